"""Are facts of a cluster shown in the terminal and on the page, and none where there is none?"""

import io
import re
from dataclasses import replace

from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.report.page.details import environments
from broadgauge.report.terminal.printing import print_run
from broadgauge.results.model import RunSummary

CLUSTER = {"kubernetes": "v1.34.4", "instance types": "a<b × 2", "GPU driver": None}


def in_pods(run: RunSummary) -> RunSummary:
    known = {
        key: each.model_copy(update={"platform": "kubernetes", "cluster": CLUSTER})
        for key, each in run.environments.items()
    }
    return replace(run, environments=known)


def printed(run: RunSummary) -> list[str]:
    """Under its heading in the terminal."""
    stream = io.StringIO()
    print_run(analysed(run), Console(file=stream, width=200))
    return [line.strip() for line in stream.getvalue().split("Environment 9f2c")[1].splitlines()]


def rows_on_page(run: RunSummary) -> list[str]:
    """Fact and value, with all else taken away."""
    rows = str(environments(run)).split("<tr>")[1:]
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]


def test_the_terminal_tells_each_fact(run: RunSummary) -> None:
    lines = printed(in_pods(run))
    assert lines[-3:] == [
        "cluster kubernetes: v1.34.4",
        "cluster instance types: a<b × 2",
        "cluster GPU driver: unknown",
    ]


def test_the_page_has_a_row_a_fact(run: RunSummary) -> None:
    assert rows_on_page(in_pods(run))[-3:] == [
        "cluster kubernetes v1.34.4",
        "cluster instance types a&lt;b × 2",
        "cluster GPU driver unknown",
    ]


def test_nothing_is_told_of_no_cluster(run: RunSummary) -> None:
    told = [*printed(run), *rows_on_page(run)]
    assert any(line.startswith("kernel") for line in told)
    assert not any(line.startswith("cluster") for line in told)
