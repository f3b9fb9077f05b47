"""Is what NCCL did shown: networks, ways from rank to rank, and why a case is a failed one?"""

import io
import re
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console
from tests.report.sample_nccl import CASES, NO_ADAPTER, USES, nccl_run, use

from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.model import AnalysedRun, NcclTaken
from broadgauge.report.export.run_tables import table_of
from broadgauge.report.page.html import render
from broadgauge.report.rows.nccl import MOST_RANKS, gpudirect_words, nccl_rows, path_matrices
from broadgauge.report.terminal.printing import print_run
from broadgauge.report.words.findings import cause_words, why_failed
from broadgauge.specs.records.nccl import NcclUse, NcclWay
from broadgauge.specs.records.record import Confidence


@pytest.fixture(scope="module")
def shown() -> AnalysedRun:
    return analysed(nccl_run(Path("/nowhere")))


def words_of(page: str) -> str:
    text = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def printed(shown: AnalysedRun, width: int) -> str:
    stream = io.StringIO()
    print_run(shown, Console(file=stream, width=width))
    return stream.getvalue()


def test_a_case_has_a_row_with_what_nccl_did(shown: AnalysedRun) -> None:
    rows = {label: row for label, *row in nccl_rows(shown.analysis)}
    assert rows["collectives 2x8 roce"] == [
        "IB",
        "mlx5_0:1/RoCE, mlx5_1:1/RoCE",
        "on",
        "16",
        "2",
        "2.28.9",
        "1.83 s",
    ]
    assert rows["collectives 2x2 tcp"][:4] == ["Socket", "eth2", "–", "2"]
    assert rows["collectives 2x2 roce-no-gdr"][2] == "off"


def test_equal_matrices_are_drawn_once(shown: AnalysedRun) -> None:
    matrices = path_matrices(shown.analysis)
    assert [each.num_ranks for each in matrices] == [16, 4, 4]
    assert matrices[0].labels == ("collectives 2x8 roce", "collectives 2x8 roce-again")
    assert matrices[0].cells[7, 8] == ("GDRDMA",)
    assert matrices[0].cells[0, 1] == ("P2P",)
    assert (0, 5) not in matrices[0].cells
    assert [name for name, _ in matrices[0].legend] == ["GDRDMA", "P2P"]


def test_a_pair_with_two_ways_is_shown_as_the_slower_one() -> None:
    ways = tuple(NcclWay(way=way, num_pairs=1, pairs=((0, 1),)) for way in ("GDRDMA", "network"))
    uses = (use("IB", "GDRDMA", 8, ways=ways), *USES[1:])
    found = analysed(nccl_run(Path("/nowhere"), uses)).analysis
    assert path_matrices(found)[0].cells[0, 1] == ("network", "GDRDMA")


@pytest.mark.parametrize(
    ("num_ranks", "num_pairs", "is_drawn"),
    [(MOST_RANKS, 1, True), (MOST_RANKS + 1, 1, False), (4, 300, False)],
)
def test_what_does_not_fit_or_is_not_whole_is_not_drawn(
    num_ranks: int, num_pairs: int, is_drawn: bool
) -> None:
    way = NcclWay(way="GDRDMA", num_pairs=num_pairs, pairs=((0, 1),), num_channels=4)
    uses = (use("IB", "GDRDMA", 8, num_ranks=num_ranks, ways=(way,)), *USES[1:])
    found = analysed(nccl_run(Path("/nowhere"), uses))
    assert path_matrices(found.analysis)[0].is_drawn == is_drawn
    pairs = "1 pair of ranks" if num_pairs == 1 else "300 pairs of ranks"
    assert f"GDRDMA: {pairs}, up to 4 channels" in words_of(render(found))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpudirect": True}, "on"),
        ({"gpudirect": False}, "off"),
        ({"network": "IB", "num_nodes": 2}, "unknown"),
        ({"network": "Socket", "num_nodes": 2}, "–"),
        ({"network": "IB", "num_nodes": 1}, "–"),
        (
            {
                "ways": (
                    NcclWay(way="GDRDMA", num_pairs=3),
                    NcclWay(way="network", num_pairs=1),
                )
            },
            "3 of 4 pairs",
        ),
    ],
)
def test_gpudirect_in_words(changes: dict[str, object], words: str) -> None:
    assert gpudirect_words(NcclUse().model_copy(update=changes)) == words


def test_the_page_has_the_section_with_matrix_and_legend(shown: AnalysedRun) -> None:
    page = render(shown)
    words = words_of(page)
    assert "What NCCL did" in words
    assert 'title="7 → 8: GDRDMA"' in page
    assert "GPUDirect RDMA, from the GPU&#x27;s memory to the NIC" in page
    assert "via NET/IB/0/GDRDMA" in words


def test_a_failed_case_names_the_cause_and_what_helps(shown: AnalysedRun) -> None:
    for words in (words_of(render(shown)), " ".join(printed(shown, 400).split())):
        assert "network roce is meant as RoCE with GPUDirect, and NCCL sent over TCP" in words
        assert "fix: `broadgauge doctor --host` on the nodes says what is missing" in words
        assert (
            "the container has no /dev/infiniband, or the adapter's port is down (likely)" in words
        )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_terminal_has_it_too(shown: AnalysedRun, width: int) -> None:
    text = printed(shown, width)
    assert max(map(len, text.splitlines())) <= width
    assert "What NCCL did" in text
    assert "GDRDMA: 4 pairs of ranks" in " ".join(text.split())
    if width >= 80:
        assert "7   ·  ·  ·  ·  ·  ·  P  ·  G" in text


def test_a_run_without_nccl_has_no_such_section() -> None:
    found = analysed(nccl_run(Path("/nowhere"), (None,) * len(CASES)))
    assert "What NCCL did" not in words_of(render(found))
    assert "What NCCL did" not in printed(found, 80)


def test_what_was_otherwise_in_other_trials_is_said(shown: AnalysedRun) -> None:
    case = shown.analysis.cases[0]
    taken = NcclTaken(use=USES[0], other_trials=("network Socket in 1 of 5 trials",))
    cases = (case.model_copy(update={"nccl": taken}),)
    found = shown.analysis.model_copy(update={"cases": cases})
    assert nccl_rows(found)[0][1] == "IB\nnetwork Socket in 1 of 5 trials"


def test_how_sure_a_cause_is() -> None:
    assert cause_words("x", Confidence.POSSIBLE) == "x (one possible cause)"
    assert cause_words("x", None) == "x"
    assert cause_words(None, Confidence.CERTAIN) is None


def test_a_failed_record_without_findings_says_nothing_more(shown: AnalysedRun) -> None:
    record = shown.run.records[-1].model_copy(update={"findings": ()})
    assert why_failed(record) == ()
    warned = record.model_copy(update={"findings": (NO_ADAPTER,)})
    assert why_failed(warned)[0] == NO_ADAPTER.symptom


def test_exports_say_what_was_wanted_and_what_nccl_used(shown: AnalysedRun) -> None:
    table = table_of(shown)
    names = [column.name for column in table.columns]
    wanted = ("network", "status", "transport_wanted", "nccl_network", "gpudirect")
    rows = {tuple(row[names.index(name)] for name in wanted) for row in table.rows}
    assert rows == {
        ("roce", "ok", "roce", "IB", True),
        ("roce-again", "ok", "roce", "IB", True),
        ("roce-no-gdr", "ok", "roce", "IB", False),
        ("tcp", "ok", "tcp", "Socket", None),
        ("roce", "failed", "roce", "Socket", None),
    }
