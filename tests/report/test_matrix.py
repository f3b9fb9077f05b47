"""Are hypotheses, published rows, pairs, placement, paths and NICs shown, and nothing mixed?"""

import importlib.util
import io
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from broadgauge.advise.pairs.slow_pairs_over_launches import judged_pairs
from broadgauge.analysis.analyse import analyse, analysed
from broadgauge.report.charts.collectives import busbw_chart
from broadgauge.report.charts.pairs import SLOW_COLOUR, pair_chart
from broadgauge.report.page.html import render
from broadgauge.report.rows.closing import columns, table_rows
from broadgauge.report.terminal.printing import print_closing_table, print_run
from broadgauge.results.model import RunSummary


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    path = Path(__file__).parent / "sample_matrix.py"
    spec = importlib.util.spec_from_file_location("broadgauge_sample_matrix", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    made: RunSummary = module.matrix_run(tmp_path_factory.mktemp("matrix"))
    return made


@pytest.fixture(scope="module")
def page(matrix: RunSummary) -> str:
    return render(analysed(matrix))


def words_of(page: str) -> str:
    text = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def printed(printer, run: RunSummary, width: int) -> str:
    stream = io.StringIO()
    printer(run, Console(file=stream, width=width))
    return stream.getvalue()


SHOWN = (
    "refuted",
    "The way between the GPUs is not a significant factor for DDP",
    "refuted by 2 of 2 cases: ddp 4x1 ethernet-25, ddp 4x1 rails-4x10",
    "step time, a ratio, at most 1.1×",
    "DDP scales near-linearly inside the node",
    "no case of this run is `over: ethernet` and agrees in the rest",
    "none: no case of this run is `infiniband*`",
    "An article, 2025-06-01, table 2; ours: ddp 1x4 nvlink; A100 80 GB, batch 16",
    "theirs 0.234×",
    "Placement of the same number of ranks",
    "Paths inside a node",
    "NICs of a node",
    "eth0 of node 0",
    "4 × 10 Gbit/s",
)


def test_the_page_shows_it_all(page: str) -> None:
    words = words_of(page)
    for figure in (*SHOWN, "slow: node 1 to node 3 and back", "slow pairs are framed"):
        assert figure.replace(" ", "") in words.replace(" ", ""), figure


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_the_terminal_shows_it_all(matrix: RunSummary, width: int) -> None:
    text = printed(print_run, analysed(matrix), width)
    assert max(map(len, text.splitlines())) <= width
    flat = "".join(text.split())
    for figure in SHOWN:
        assert figure.replace(" ", "") in flat, figure


def test_hypotheses_come_before_the_table(page: str) -> None:
    places = [page.index(f"<h2>{title}") for title in ("Hypotheses", "Published", "Pictures")]
    assert places == sorted(places)
    assert places[0] < page.index('<th scope="col">line rate')


def test_sentences_name_the_workload_where_several_share_a_network(matrix: RunSummary) -> None:
    lines = printed(print_closing_table, analysed(matrix), 120).splitlines()
    assert "ddp on ethernet-25 4x1" in lines
    assert "fsdp on ethernet-25 4x1" in lines
    assert "ddp-acc8 on ethernet-25 4x1" in lines


def test_a_baseline_is_in_no_ranking(matrix: RunSummary, page: str) -> None:
    rows = table_rows(matrix, analyse(matrix))
    assert all(row.job.case.arm == "candidate" for row in rows)
    assert "(baseline)" not in printed(print_closing_table, analysed(matrix), 160)
    assert page.count("ddp 4x1 ethernet-25 (baseline)") >= 1, "it stands under Every figure"


def test_what_steers_terminals_and_breaks_files_is_gone(matrix: RunSummary, page: str) -> None:
    assert "\x1b" not in page
    assert "\x1b" not in printed(print_run, analysed(matrix), 80)
    assert page.encode()
    assert "Four GPUs  [31mas one, two [0m and four nodes" in page
    hostile = replace(matrix, notes=("left\u202eright \x07\x9b2J",))
    assert not {"\u202e", "\x07", "\x9b"} & set(render(analysed(hostile)))
    assert not {"\u202e", "\x07", "\x9b"} & set(printed(print_run, analysed(hostile), 80))


def test_the_heat_map_frames_the_slow_ways(matrix: RunSummary) -> None:
    (pairs,) = filter(None, map(judged_pairs, matrix.cases))
    spec = pair_chart(pairs)
    cells = spec["layer"][0]["data"]["values"]
    framed = spec["layer"][1]["data"]["values"]
    assert len(cells) == 12
    assert {(cell["origin"], cell["target"]) for cell in framed} == {(1, 3), (3, 1)}
    assert spec["layer"][0]["encoding"]["color"]["scale"]["range"][0] == SLOW_COLOUR
    assert {cell["number"] for cell in framed} <= {"1.17", "1.18"}


def test_a_curve_is_one_case(matrix: RunSummary) -> None:
    """Engines and shapes are series of their own: no line goes from one case to another."""
    spec = busbw_chart(matrix, "all_reduce", "float32")
    assert spec is not None
    points = spec["layer"][1]["data"]["values"]
    curves: dict[tuple[str, str], list[int]] = {}
    for point in points:
        curves.setdefault((point["network"], point["variant"]), []).append(point["size"])
    assert all(len(sizes) == len(set(sizes)) for sizes in curves.values())
    assert ("nvlink", "1x4 nccl-tests") in curves
    assert ("ethernet-25", "2x2 collectives") in curves
    dashes = spec["layer"][2]["encoding"]["strokeDash"]["scale"]
    assert len({tuple(dash) for dash in dashes["range"]}) == len(dashes["domain"])


def test_gloo_on_gpus_is_named_everywhere(matrix: RunSummary) -> None:
    cases = tuple(
        replace(s, case=s.case.model_copy(update={"backend": "gloo"})) for s in matrix.cases
    )
    gloo = replace(matrix, cases=cases)
    spec = busbw_chart(gloo, "all_reduce", "float32")
    assert spec is not None
    names = {line["network"] for line in spec["layer"][0]["data"]["values"]}
    assert names == {"ethernet-25/gloo", "rails-4x10/gloo"}
    assert all(row.network.endswith("/gloo") for row in table_rows(gloo, analyse(gloo)))


def test_the_slowest_pair_is_a_figure_of_the_table(matrix: RunSummary) -> None:
    rows = table_rows(matrix, analyse(matrix))
    figure = next(column for column in columns(rows) if column.title == "figure")
    (row,) = (row for row in rows if row.job.case.workload.name == "pairs")
    cell = figure.cell(row)
    assert cell is not None
    assert cell.main.startswith("40")
    assert cell.below == "slowest pair"
