"""What is said of a network between nodes: is its rate one that we set, or was it found?

A found network has no rate of ours. Beside it stands its nominal rate, where the experiment says
one, or else what plain TCP streams carried over it.
"""

from collections.abc import Iterable, Sequence

from broadgauge.report.words.cells import Cell
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.networks.network import Network
from broadgauge.specs.units import show_rate

NOT_MEASURED = "no nominal rate is given, and what plain TCP streams carry was not measured"


def line_rate_cell(summaries: Sequence[CaseSummary]) -> Cell | None:
    """The rate of the network that all of these cases ran on; None: all ranks are on one node."""
    link = summaries[0].case.link
    if link is None:
        return None
    if link.face is not None:
        return _found(link, summaries)
    if link.rate_gbps is None:
        return Cell(main="unshaped")
    nics = _nics(link.num_nics)
    inwards = link.receive_rate_gbps
    sub = "" if inwards is None else f"{nics}{show_rate(inwards)} in"
    return Cell(main=f"{nics}{show_rate(link.rate_gbps)}", sub=sub)


def _found(link: Network, summaries: Sequence[CaseSummary]) -> Cell:
    assert link.face is not None, link.name
    nominal_gbps = link.face.nominal_gbps
    if nominal_gbps is not None:
        rate = f"{_nics(link.num_face_nics)}{show_rate(nominal_gbps)}"
        return Cell(main="found", sub=rate, below="nominal", detail="by its data sheet")
    ones = [s.ceiling_gbps.value for s in summaries if s.ceiling_gbps is not None]
    eights = [s.eight_streams_gbps.value for s in summaries if s.eight_streams_gbps is not None]
    known = [*((gbps, "one plain TCP stream") for gbps in ones[:1])]
    known += [(gbps, "eight plain TCP streams") for gbps in eights[:1]]
    if not known:
        return Cell(main="found", sub="rate", below="not known", detail=NOT_MEASURED)
    gbps, streams = max(known)
    detail = f"{streams} carried at least {show_rate(gbps)}"
    return Cell(main="found", sub=show_rate(gbps), below="carried", detail=detail)


def _nics(num_nics: int) -> str:
    return f"{num_nics} × " if num_nics > 1 else ""


def stream_title(summaries: Iterable[CaseSummary], num: str = "one") -> str:
    """`one stream unshaped, at least`; over networks that are all found nothing is ever shaped."""
    links = [each.case.link for each in summaries if each.case.link is not None]
    is_found = bool(links) and all(link.face is not None for link in links)
    streams = "stream" if num == "one" else "streams"
    return f"{num} plain {streams}, at least" if is_found else f"{num} {streams} unshaped, at least"


def reference_words(run: RunSummary) -> str:
    """With which network are the others of a run compared? Of those found no rate is known."""
    if not has_found(run):
        return "the fastest network"
    return "the fastest, of those found the first" if has_emulated(run) else "the first network"


def has_emulated(run: RunSummary) -> bool:
    """Is a network of this run one that we built?"""
    links = (each.case.link for each in run.cases)
    return any(link is not None and link.face is None for link in links)


def has_found(run: RunSummary) -> bool:
    """Was a network of this run there already?"""
    links = (each.case.link for each in run.cases)
    return any(link is not None and link.face is not None for link in links)
