"""Do the terminal and the page say what the gate found, and what it could have found?"""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console
from tests.results.comparing.test_gate import EXACT, SLOWER, a_case, a_run

from broadgauge.analysis.analyse import analyse
from broadgauge.report.page.baseline import baseline
from broadgauge.report.terminal.printing import print_arms_compared, print_gate
from broadgauge.results.comparing.arms import arms_compared, of_arm
from broadgauge.results.comparing.gate import gate
from broadgauge.results.model import RunSummary

NOISY = [1.0, 1.2, 0.8, 1.1, 0.9]


def with_limit(run: RunSummary, ratio: float) -> RunSummary:
    assert run.plan.baseline is not None
    kept = run.plan.baseline.model_copy(update={"fail_above_ratio": ratio})
    return replace(run, plan=run.plan.model_copy(update={"baseline": kept}))


def printed(run: RunSummary, width: int = 120) -> str:
    out = io.StringIO()
    print_gate(gate(run, 0.03), Console(file=out, width=width), run.plan.baseline)
    return out.getvalue()


def test_each_case_and_the_whole_have_their_sentence() -> None:
    run = a_run((a_case("slow"), SLOWER, EXACT), (a_case("noisy"), NOISY, EXACT))
    text = " ".join(printed(run, 300).split())
    assert "slow 2x1 slow: regression: 50 % slower, beyond chance and above the limit" in text
    unclear = r"noisy 2x1 slow: can't tell: [\d.]+ % \w+, the interval reaches above the limit; 5"
    assert re.search(unclear, text)
    assert "5 launches show a slowdown of" in text
    assert "would show the limit as often" in text
    assert text.endswith("fail above 3 %: regression (1 of 2 cases)")
    assert "Against the baseline runs/old, interleaved" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    run = a_run((a_case("slow"), SLOWER, EXACT))
    assert all(len(line) <= width for line in printed(run, width).splitlines())


def test_the_columns_say_which_mean_they_hold() -> None:
    run = a_run((a_case(), SLOWER, EXACT))
    out = io.StringIO()
    assert run.plan.baseline is not None
    print_arms_compared(run.plan.baseline, arms_compared(run), Console(file=out, width=120))
    text = out.getvalue()
    assert "A (mean)" in text
    assert "B / A (geometric)" in text
    assert "mine 2x1 slow: step time is 50 % higher in B, worse" in text


def test_the_page_has_the_outcome_where_the_run_has_a_limit() -> None:
    run = a_run((a_case(), SLOWER, EXACT))
    shown = baseline(run, analyse(run))
    assert "Against the baseline" in shown
    assert "Fail above" not in shown
    assert "1.5×" in shown
    limited = with_limit(run, 0.03)
    gated = baseline(limited, analyse(limited))
    assert "Fail above 3 %: regression (1 of 1 cases)." in gated
    assert "50 % slower" in gated


def test_a_run_without_a_baseline_has_no_such_part() -> None:
    run = a_run((a_case(), SLOWER, EXACT))
    alone = replace(run, plan=run.plan.model_copy(update={"baseline": None}))
    assert baseline(alone, analyse(alone)) == ""
    assert of_arm(alone, "candidate") is alone
