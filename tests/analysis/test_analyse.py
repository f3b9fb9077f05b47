"""Is everything that is judged of a run in its analysis, as the rooms below judge it?"""

import pytest
from tests.report.page.test_baseline import with_limit
from tests.report.sample_matrix import matrix_run
from tests.results.comparing.test_gate import EXACT, SLOWER, a_case, a_run

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.pairs.slow_pairs_over_launches import judged_pairs
from broadgauge.analysis.analyse import analyse, analysed
from broadgauge.analysis.model import Analysis
from broadgauge.analysis.store import analysis_json
from broadgauge.results.comparing.compare_cases import against_reference
from broadgauge.results.comparing.gate import GateOutcome, gate
from broadgauge.results.model import RunSummary
from broadgauge.specs.base import AS_STORED


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """Pairs, paths, hypotheses and published figures."""
    return matrix_run(tmp_path_factory.mktemp("matrix"))


def test_every_case_has_the_verdict_of_its_rule(matrix: RunSummary) -> None:
    judged = analyse(matrix).cases
    assert [case.key for case in judged] == [summary.case.key for summary in matrix.cases]
    for case, summary in zip(judged, matrix.cases, strict=True):
        assert case.verdict == verdict(summary, matrix)


def test_slow_ways_and_paths_are_in_it(matrix: RunSummary) -> None:
    cases = {case.key: case for case in analyse(matrix).cases}
    with_ways = [summary for summary in matrix.cases if judged_pairs(summary) is not None]
    assert with_ways
    for summary in with_ways:
        pairs, ways = judged_pairs(summary), cases[summary.case.key].ways
        assert pairs is not None
        assert ways is not None
        assert (set(ways.slow), ways.sentence) == (set(pairs.slow), pairs.words)
    assert any(case.path is not None and case.path.used for case in cases.values())


def test_networks_are_compared_with_the_fastest(matrix: RunSummary) -> None:
    rows = against_reference(matrix)
    judged = analyse(matrix).networks
    assert [(row.a, row.b) for row in judged] == [(row.a_label, row.b_label) for row in rows]
    assert [row.ratio for row in judged] == [
        None if row.comparison is None else row.comparison.ratio for row in rows
    ]


def test_a_baseline_is_gated_where_the_run_has_a_limit() -> None:
    run = a_run((a_case("slow"), SLOWER, EXACT))
    assert analyse(run).gate is None
    assert len(analyse(run).arms) == 1
    limited = analyse(with_limit(run, 0.03))
    assert limited.gate == gate(run, 0.03)
    assert limited.gate.outcome is GateOutcome.REGRESSION
    assert read_back(limited) == limited


def test_all_of_it_survives_being_stored(matrix: RunSummary) -> None:
    analysis = analysed(matrix).analysis
    assert analysis.hypotheses
    assert analysis.published
    assert analysis.findings
    assert read_back(analysis) == analysis


def read_back(analysis: Analysis) -> Analysis:
    return Analysis.model_validate_json(analysis_json(analysis), context=AS_STORED)
