"""What do the phases on a storage wait for: the storage, or what is done beside it?"""

from collections.abc import Iterator

from broadgauge.advise.limits import STORAGE_DEVICE_RATIO
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary
from broadgauge.results.storage_cases import StorageFigure, speaking_figures
from broadgauge.specs.units import show_bandwidth, show_ratio, show_time

_SHARES = {
    "checkpoint_saving": ("checkpoint_device_share_ratio", "checkpointing", "write"),
    "model_loading": ("model_loading_device_share_ratio", "model loading", "read"),
}
_BACKGROUND = "background"
"""What a save takes from its stall until it is durable, where its parts don't say."""
_STORAGE_PARTS = {"write", "sync", "upload", "read", _BACKGROUND}
"""Parts of a phase in which the storage works."""
_PART_WORDS = {
    "gather": "gathering it from the ranks",
    "device_to_host": "copying it from the device",
    "serialise": "serialisation",
    "deserialise": "deserialisation",
    "broadcast": "the broadcast to the other ranks",
    "to_device": "copying it to the device",
    "write": "writing",
    "sync": "fsync",
    "upload": "the upload",
    "read": "reading",
    _BACKGROUND: "writing or uploading it behind training's back",
}


def verdict_of_storage(summary: CaseSummary) -> Verdict:
    """Of saving, else of loading; the evidence has all phases."""
    figures = speaking_figures(summary)
    evidence = tuple(_evidence(figures))
    for phase, (metric, _, _) in _SHARES.items():
        share = summary.value(metric)
        if share is None or phase not in figures:
            continue
        words = device_share_words(summary, figures[phase])
        assert words is not None, "its share is known"
        bound = Bound.STORAGE if is_storage_limit(figures[phase], share) else Bound.HOST
        return verdict_that(bound, words, evidence)
    return verdict_that(Bound.UNKNOWN, "no phase can be put against raw rates", evidence)


def device_share_words(summary: CaseSummary, figure: StorageFigure) -> str | None:
    """`checkpointing reaches 31 % of the device's write rate; serialisation is the limit`; None:
    the phase has no such figure."""
    if figure.phase not in _SHARES:
        return None
    metric, what, access = _SHARES[figure.phase]
    share = summary.value(metric)
    if share is None:
        return None
    words = f"{what} reaches {show_ratio(share)} of the device's plain {access} rate"
    if share >= STORAGE_DEVICE_RATIO:
        return f"{words}; the storage is the limit"
    part = longest_part(figure)
    if part is None:
        return f"{words}; what takes the rest is not known"
    name, of_all = part
    is_storage = name in _STORAGE_PARTS
    but = ", in smaller or fewer requests than plain ones" if is_storage else ""
    return f"{words}; {_PART_WORDS.get(name, name)} takes {show_ratio(of_all)} of it{but}" + (
        "" if is_storage else " and is the limit"
    )


def is_storage_limit(figure: StorageFigure, share: float) -> bool:
    """Does the storage work for most of the phase, or as fast as it can?"""
    part = longest_part(figure)
    return share >= STORAGE_DEVICE_RATIO or (part is not None and part[0] in _STORAGE_PARTS)


def longest_part(figure: StorageFigure) -> tuple[str, float] | None:
    """The part that took longest on the slowest rank, and its share of all parts; of a save until
    it is durable."""
    parts_s = dict(figure.parts_s)
    total_s = sum(parts_s.values())
    if not total_s:
        return None
    if figure.durable_s is not None and figure.durable_s.value > total_s:
        parts_s[_BACKGROUND] = figure.durable_s.value - total_s
        total_s = figure.durable_s.value
    name = max(parts_s, key=lambda part: parts_s[part])
    return name, parts_s[name] / total_s


def _evidence(figures: dict[str, StorageFigure]) -> Iterator[str]:
    for figure in figures.values():
        if figure.wait_s is None:
            continue
        words = f"{figure.phase.replace('_', ' ')} ({figure.variant})"
        if figure.phase == "raw":
            rate = figure.gbyte_per_s
            yield f"{words}: " + ("too short" if rate is None else show_bandwidth(rate.value))
            continue
        words += f": training waits {show_time(figure.wait_s.value)}"
        if figure.durable_s is not None:
            words += f", durable after {show_time(figure.durable_s.value)}"
        if figure.cache is not None:
            words += f", cache {figure.cache}"
        yield words
