"""Does a traced run bring what is predicted of other networks nearer to what was measured?"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.sample_run import Options, sample_run

from broadgauge.predict.runs.cases import RunCase, pick_case
from broadgauge.predict.whatif.changes import Change, WhatIf
from broadgauge.predict.whatif.traced_overlap import TracedOverlap, traced_overlap
from broadgauge.predict.whatif.whatif import what_if
from broadgauge.report.whatif_words import measured_lines, modelled_lines
from broadgauge.results.model import RunSummary
from broadgauge.results.traced_cases import TracedCase
from broadgauge.specs.network import Network
from broadgauge.specs.traced_steps import TracedSteps

COMPUTE_S, WIRE_SHARE = 0.16, 1448 / 1514


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """Its trainings alone: without its collectives networks are known by their line's rate."""
    run = sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))
    return replace(run, cases=tuple(case for case in run.cases if not case.collectives))


def transfer_s(base: RunCase, rate_gbps: float) -> float:
    """Of all gradients on two nodes: each sends them once (2(n-1)/n = 1)."""
    sent_bytes = 4 * base.workload.model.shape.parameters
    return sent_bytes * 8 / (rate_gbps * 1e9 * WIRE_SHARE)


def known(base: RunCase, rate_gbps: float, hideable_s: float) -> tuple[float, float]:
    """The oracle: a step that computes for so long, and hides communication in a part of that.
    Gives the step, and what it hides."""
    sent_s = transfer_s(base, rate_gbps)
    hidden_s = min(hideable_s, sent_s)
    return COMPUTE_S + sent_s - hidden_s, hidden_s


def measured(run: RunSummary, rate_gbps: float, hideable_s: float, *, overhead: float) -> RunCase:
    """The run's training as the oracle has it; its traced step is slower by `overhead`."""
    plain = pick_case(run, "network=pod-like")
    step_s, hidden_s = known(plain, rate_gbps, hideable_s)
    traced = TracedSteps(
        traces_count=2,
        steps_count=2,
        step_time_s=step_s * overhead,
        parts_s={
            "compute": COMPUTE_S * overhead,
            "exposed_communication": (step_s - COMPUTE_S) * overhead,
            "straggler_wait": 0.0,
        },
        overlapped_communication_s=hidden_s * overhead,
        is_all_ranks=True,
    )
    network = Network(name="own", rate_gbps=rate_gbps)
    return replace(
        plain,
        case=plain.case.model_copy(update={"network": network}),
        step_s=replace(plain.step_s, value=step_s),
        without_s=None,
        wire_bytes=None,
        curves=(),
        traced=TracedCase(
            summary=plain.summary,
            record=plain.summary.good[0],
            traced=traced,
            step_time_s=step_s * overhead,
            shortest_step_s=step_s * overhead,
            longest_step_s=step_s * overhead,
            num_trials=1,
            num_missing=0,
        ),
    )


def asked(run: RunSummary, base: RunCase, rate_gbps: float) -> WhatIf:
    change = Change(label="x", network=Network(name="x", rate_gbps=rate_gbps))
    return what_if(run, base, [change])


def misses(run: RunSummary, base: RunCase, other_gbps: float, truth_s: float) -> list[float]:
    """How far is the prediction from the truth, with the trace and without it?"""
    cases = (base, replace(base, traced=None))
    steps = [asked(run, case, other_gbps).answers[0].step_s for case in cases]
    assert steps[0].low <= truth_s <= steps[0].high
    return [abs(float(np.log(step.value / truth_s))) for step in steps]


@pytest.mark.parametrize("hideable_s", [0.03, 0.06, 0.12])
@pytest.mark.parametrize("other_gbps", [0.2, 0.4])
def test_on_a_slower_network_as_many_seconds_are_hidden(
    run: RunSummary, hideable_s: float, other_gbps: float
) -> None:
    """Without its trace, hidden communication is taken for none; 1 % are the model's headers."""
    base = measured(run, 0.5, hideable_s, overhead=1.2)
    with_trace, without = misses(run, base, other_gbps, known(base, other_gbps, hideable_s)[0])
    assert with_trace < 0.01
    assert with_trace < without


@pytest.mark.parametrize("hideable_s", [0.03, 0.06, 0.12])
def test_what_the_run_can_t_tell_is_within_the_bounds(run: RunSummary, hideable_s: float) -> None:
    """On a faster network all of it may be hidden, or as large a share as in the run."""
    base = measured(run, 0.5, hideable_s, overhead=1.2)
    hidden_ratio = hideable_s / transfer_s(base, 0.5)
    short_s = transfer_s(base, 2.0)
    for truth_s in (known(base, 2.0, hideable_s)[0], COMPUTE_S + (1 - hidden_ratio) * short_s):
        misses(run, base, 2.0, truth_s)


def test_without_a_change_the_answer_is_the_measured_step(run: RunSummary) -> None:
    base = measured(run, 0.5, 0.06, overhead=1.2)
    found = what_if(run, base, [Change(), Change(strategy="fsdp")])
    assert found.answers[0].step_s.value == pytest.approx(base.step_s.value, rel=1e-6)
    assert found.without_s == pytest.approx(COMPUTE_S)
    assert found.answers[1].step_s.value > 0


def test_it_is_said_where_kernels_and_overlap_come_from(run: RunSummary) -> None:
    base = measured(run, 0.5, 0.06, overhead=1.2)
    trial = base.summary.good[0].record_id
    found = asked(run, base, 2.0)
    assert found.traced_trial == trial
    words = " ".join((*measured_lines(found), *modelled_lines(found)))
    assert f"the traced steps of trial {trial}" in words
    assert "communication_off" not in words
    plain = asked(run, replace(base, traced=None), 2.0)
    assert plain.traced_trial is None
    assert "traced" not in " ".join((*measured_lines(plain), *modelled_lines(plain)))


def test_a_trace_that_can_t_be_is_not_used(run: RunSummary) -> None:
    """Ten times the communication that the line needs is no communication of this network."""
    base = measured(run, 0.5, 0.06, overhead=1.2)
    assert base.traced is not None
    odd = base.traced.traced.model_copy(update={"overlapped_communication_s": 10.0})
    with_odd = replace(base, traced=replace(base.traced, traced=odd))
    assert asked(run, with_odd, 2.0).traced_trial is None
    unknown = base.traced.traced.model_copy(update={"overlapped_communication_s": None})
    assert traced_overlap(replace(base.traced, traced=unknown), 1.0, None) is None
    assert traced_overlap(None, 1.0, None) is None


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.lists(st.floats(0, 10), min_size=2))
def test_more_communication_never_exposes_less(
    exposed_s: float, hidden_s: float, hideable_ratio: float, sizes: list[float]
) -> None:
    overlap = TracedOverlap(trial="t", exposed_s=exposed_s, hidden_s=hidden_s)
    there_s = np.array(sorted(sizes))
    value = overlap.exposed_there_s(there_s, hideable_ratio)
    for found in (value, overlap.most_exposed_s(there_s), overlap.least_exposed_s(there_s)):
        assert (np.diff(found) >= -1e-9).all()
        assert (found >= -1e-9).all()
        assert (found <= there_s + 1e-9).all()
    assert (overlap.most_exposed_s(there_s) >= value - 1e-9).all()
    assert (overlap.least_exposed_s(there_s) <= value + 1e-9).all()
    own = overlap.exposed_there_s(np.array([overlap.communication_s]), hideable_ratio)
    assert own == pytest.approx(exposed_s, abs=1e-9)
