"""Do the fast engine and the plain one agree, on programs and on whole steps?"""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.making_cases import case, cases

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.predictor import predict
from broadgauge.predict.timeline.simulation import Recorder, play, step_time_s
from broadgauge.predict.timeline.timeline import Steps, Stream, Timeline
from broadgauge.predict.timeline.trace import chrome_trace, pieces_of, simulate

EXACT = 1e-9
FOLDED = 2e-3
"""Of a pipeline whose steady state is extrapolated."""


def one(seconds: float) -> np.ndarray:
    return np.array([seconds])


def test_streams_work_in_order_and_beside_each_other() -> None:
    recorder = Recorder()
    first = recorder.run(Stream.COMPUTE, one(2.0), name="a")
    sent = recorder.run(Stream.INTER, one(3.0), after=[first], name="send a")
    recorder.run(Stream.COMPUTE, one(4.0), name="b")
    recorder.run(Stream.COMPUTE, one(1.0), after=[sent], name="c")

    events = {event.name: event for event in play(recorder.pieces)}

    assert (events["send a"].start_s, events["send a"].end_s) == (2.0, 5.0)
    assert (events["b"].start_s, events["b"].end_s) == (2.0, 6.0)
    assert events["c"].end_s == 7.0


def test_a_piece_behind_a_waiting_one_waits_too() -> None:
    recorder = Recorder()
    slow = recorder.run(Stream.COMPUTE, one(5.0), name="slow")
    recorder.run(Stream.INTER, one(1.0), after=[slow], name="waits")
    recorder.run(Stream.INTER, one(1.0), name="behind")

    assert step_time_s(play(recorder.pieces)) == 7.0


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[Stream, float, list[int]]]:
    """Pieces: stream, duration, and which of the last handles they wait for."""
    return draw(
        st.lists(
            st.tuples(
                st.sampled_from((Stream.COMPUTE, Stream.INTER, Stream.HOST)),
                st.floats(0, 10),
                st.lists(st.integers(0, 2), max_size=2),
            ),
            min_size=1,
            max_size=6,
        )
    )


@given(program=programs(), outer=st.integers(0, 5), inner=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_loops_within_loops_are_what_they_are_unrolled(program, outer, inner) -> None:
    def run(steps: Steps) -> None:
        def body(within: Steps, carried):
            handles = list(carried)
            for stream, seconds, waits in program:
                after = [handles[-1 - wait] for wait in waits]
                handles.append(within.run(stream, one(seconds), after=after, name="piece"))
            return handles[-3:]

        def turn(within: Steps, carried):
            return within.repeat(one(inner), body, body(within, carried))

        start = [steps.run(Stream.HOST, one(1.0), name="start") for _ in range(3)]
        steps.repeat(one(outer), turn, start)

    timeline, recorder = Timeline(1), Recorder()
    run(timeline)
    run(recorder)

    assert timeline.end_s[0] == pytest.approx(step_time_s(play(recorder.pieces)), rel=EXACT)


@given(each=cases())
@settings(max_examples=25, deadline=None)
def test_the_fast_step_is_the_plain_one(each: TrainingCase) -> None:
    (fast,) = predict([each])

    plain_s = step_time_s(simulate(each))
    is_folded = each.pipeline_parallel > 1 and each.micro_batches > 2 * each.pipeline_parallel

    tolerance = FOLDED if is_folded else EXACT
    assert fast.step_time_s.value == pytest.approx(plain_s, rel=tolerance)


@pytest.mark.parametrize(("stages", "chunks"), [(2, 1), (8, 1), (4, 2), (8, 3)])
@pytest.mark.parametrize("gbps", [10.0, 3200.0])
def test_a_pipeline_folded_in_time_is_the_unfolded_one(stages, chunks, gbps) -> None:
    micro_batches = 10 * stages + 1 if chunks == 1 else 9 * stages
    long = case(
        strategy="megatron",
        model=replace(case().model, layers=24),
        nodes=stages,
        data_parallel=8,
        pipeline_parallel=stages,
        virtual_stages=chunks,
        fabric=replace(case().fabric, node_gbps=gbps),
        global_batch=4 * micro_batches * 8,
    )

    (folded,) = predict([long])

    assert folded.step_time_s.value == pytest.approx(step_time_s(simulate(long)), rel=FOLDED)


def test_a_trace_shows_streams_by_name_and_ends_with_the_step() -> None:
    events = simulate(case(strategy="fsdp"))
    trace = json.loads(chrome_trace(events, "gpt"))["traceEvents"]

    threads = {each["args"]["name"] for each in trace if each["name"] == "thread_name"}
    last_us = max(each["ts"] + each["dur"] for each in trace if each["ph"] == "X")

    assert {"compute", "intra node", "inter node", "host"} <= threads
    assert last_us == pytest.approx(step_time_s(events) * 1e6, abs=0.01)
    assert {"forward", "backward", "gather forward", "reduce", "optimizer"} <= {
        each["name"] for each in trace
    }


def test_a_plain_step_sends_what_the_fast_one_counts() -> None:
    """Every layer's gather and reduce-scatter once a pass, no more."""
    pieces = pieces_of(case(strategy="fsdp", global_batch=128))
    gathers = [piece for piece in pieces if piece.name == "gather forward"]

    assert len(gathers) == 2 * 8 * 2  # 2 micro-batches, 8 layers, both kinds of links
