"""Proves the attribution against jobs of which every microsecond is known (synthetic.py)."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.traces import jobs
from tests.traces.synthetic import Job
from tests.traces.truth import truth_of

from broadgauge.specs.errors import InputError
from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import StepPart, TraceExplanation
from broadgauge.traces.reading.reader import read_trace
from broadgauge.traces.trace import RankTrace

PLAYED: dict[str, Callable[[], Job]] = {
    "ddp": jobs.ddp,
    "ddp, CPU ahead": lambda: jobs.ddp(is_synchronising=False, steps=5),
    "ddp, traced from its fourth step on": lambda: jobs.ddp(
        is_synchronising=False, steps=6, first_traced=3
    ),
    "ddp, gaps between kernels": lambda: jobs.ddp(gap_us=4, is_synchronising=False),
    "ddp, a late rank": lambda: jobs.ddp(late_us=(0, 300)),
    "ddp, four ranks, two late": lambda: jobs.ddp(num_ranks=4, late_us=(0, 300, 0, 90)),
    "ddp, checkpoints": lambda: jobs.ddp(plant=jobs.saved),
    "ddp, checkpoints, CPU ahead": lambda: jobs.ddp(plant=jobs.saved, is_synchronising=False),
    "fsdp2": jobs.fsdp2,
    "hsdp": jobs.hsdp,
    "graphs": jobs.replayed,
}


def traces_of(job: Job, folder: Path) -> list[RankTrace]:
    return [read_trace(path) for path in job.write(folder)]


def explained(job: Job, folder: Path) -> TraceExplanation:
    return explain(traces_of(job, folder))


def assert_is_true(found: TraceExplanation, job: Job, *, is_alone: bool = False) -> None:
    """Each part of each step of each rank, to the nanosecond."""
    for rank in found.ranks:
        for step in rank.steps:
            truth = truth_of(job, rank.rank or 0, step.number, is_alone=is_alone)
            parts = {part: step.parts.of(StepPart(part)) for part in truth.parts}
            wanted = {part: 1000 * time_us for part, time_us in truth.parts.items()}
            if is_alone:
                assert parts.pop("straggler_wait") is None
                assert wanted.pop("straggler_wait") == 0
            assert parts == wanted
            assert step.duration_ns == 1000 * (truth.end - truth.start)
            assert step.overlapped_communication_ns == 1000 * truth.overlapped
            assert dict(step.hidden_ns) == {k: 1000 * v for k, v in truth.hidden.items()}


@pytest.mark.parametrize("name", PLAYED)
def test_all_ranks_together_are_explained_exactly(name: str, tmp_path: Path) -> None:
    job = PLAYED[name]()
    found = explained(job, tmp_path)
    assert found.is_all_ranks
    assert found.notes == ()
    assert [rank.rank for rank in found.ranks] == list(range(len(job.ranks)))
    assert_is_true(found, job)


@pytest.mark.parametrize("name", ["ddp", "ddp, a late rank", "fsdp2", "hsdp"])
def test_one_rank_alone_gives_an_upper_bound(name: str, tmp_path: Path) -> None:
    job = PLAYED[name]()
    traces = traces_of(job, tmp_path)
    together = explain(traces)
    alone = explain(traces[:1])
    assert_is_true(alone, job, is_alone=True)
    assert alone.ranks[0].parts.straggler_wait_ns is None
    assert alone.stragglers == ()
    assert "upper bound" in " ".join(alone.notes)
    both = together.ranks[0].parts
    assert alone.ranks[0].parts.exposed_communication_ns == both.exposed_communication_ns + (
        both.straggler_wait_ns or 0
    )


@settings(max_examples=6, deadline=None)
@given(
    late_us=st.tuples(*[st.integers(0, 2000)] * 3),
    kernel_us=st.integers(1, 3000),
    transfer_us=st.integers(1, 4000),
    gap_us=st.integers(0, 30),
    ahead=st.booleans(),
)
def test_parts_add_up_whatever_is_played(
    *, late_us: tuple[int, ...], kernel_us: int, transfer_us: int, gap_us: int, ahead: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    job = jobs.ddp(
        num_ranks=3, late_us=late_us, kernel_us=kernel_us, transfer_us=transfer_us,
        gap_us=gap_us, is_synchronising=not ahead,
    )  # fmt: skip
    found = explained(job, tmp_path_factory.mktemp("job"))
    assert_is_true(found, job)
    for rank in found.ranks:
        assert rank.parts.total_ns == sum(step.duration_ns for step in rank.steps)
        for step in rank.steps:
            assert step.parts.total_ns == step.duration_ns
            times = np.bincount(
                step.timeline.part, weights=np.diff(step.timeline.edges_ns), minlength=8
            )
            assert times.tolist() == [step.parts.of(part) for part in StepPart]


def test_the_order_of_ranks_does_not_matter(tmp_path: Path) -> None:
    traces = traces_of(jobs.hsdp(), tmp_path)
    one, other = explain(traces), explain(reversed(traces))
    assert [rank.parts for rank in one.ranks] == [rank.parts for rank in other.ranks]
    assert one.collectives == other.collectives
    assert one.stragglers == other.stragglers


SLEEP_US = 23_000


@pytest.mark.parametrize(
    ("at", "part"),
    [
        ("load", StepPart.DATA_WAIT),
        ("forward", StepPart.HOST_IDLE),
        ("backward", StepPart.HOST_IDLE),
        ("optimizer", StepPart.HOST_IDLE),
    ],
)
@pytest.mark.parametrize("ahead", [False, True])
def test_a_planted_sleep_is_found_in_its_part(
    at: str, part: StepPart, ahead: bool, tmp_path: Path
) -> None:
    """What it cost, step − step without, is the part's growth; the rest of it is hidden."""
    kwargs = {"is_synchronising": not ahead, "steps": 4}
    without = explained(jobs.ddp(**kwargs), tmp_path)
    found = explained(jobs.ddp(plant=jobs.slept(SLEEP_US, at=at), **kwargs), tmp_path)
    for before, after in zip(without.ranks, found.ranks, strict=True):
        grown_ns = after.parts.total_ns - before.parts.total_ns
        assert grown_ns > 2_000_000
        part_ns = (after.parts.of(part) or 0) - (before.parts.of(part) or 0)
        assert abs(part_ns - grown_ns) <= 2_000_000 * len(after.steps)
        if at == "load":
            hidden = sum(step.hidden_ns[part] for step in after.steps)
            planted_ns = len(after.steps) * SLEEP_US * 1000
            assert abs(part_ns + hidden - planted_ns) <= 2_000_000 * len(after.steps)


def test_a_sleep_in_communication_is_exposed(tmp_path: Path) -> None:
    without = explained(jobs.ddp(), tmp_path)
    found = explained(jobs.ddp(delay_us=SLEEP_US), tmp_path)
    for before, after in zip(without.ranks, found.ranks, strict=True):
        grown_ns = after.parts.total_ns - before.parts.total_ns
        exposed_ns = after.parts.exposed_communication_ns - before.parts.exposed_communication_ns
        assert grown_ns == exposed_ns == 3 * SLEEP_US * 1000
    assert found.stragglers == ()


@pytest.mark.parametrize(
    ("at", "cause"), [("load", "data_wait"), ("forward", "host_idle"), ("optimizer", "host_idle")]
)
def test_a_sleep_on_one_rank_makes_it_a_straggler(at: str, cause: str, tmp_path: Path) -> None:
    without = explained(jobs.ddp(), tmp_path)
    found = explained(jobs.ddp(plant=jobs.slept(SLEEP_US, at=at, rank=1)), tmp_path)
    before, after = without.ranks[0].parts, found.ranks[0].parts
    grown_ns = after.total_ns - before.total_ns
    waited_ns = (after.straggler_wait_ns or 0) - (before.straggler_wait_ns or 0)
    assert abs(waited_ns - grown_ns) <= 2_000_000 * found.num_steps
    (late,) = found.stragglers
    assert (late.rank, late.cause) == (1, cause)
    assert abs(late.delay_s * found.num_steps * 1e9 - waited_ns) <= 2_000_000


def test_slower_kernels_are_a_straggler_too(tmp_path: Path) -> None:
    found = explained(jobs.ddp(num_ranks=4, late_us=(0, 0, 500, 0)), tmp_path)
    (late,) = found.stragglers
    assert (late.rank, late.cause) == (2, "compute")


def test_a_collective_has_its_transfer_and_its_busbw(tmp_path: Path) -> None:
    """2 MiB in 900 µs; a ring of two sends each byte once: 2(2−1)/2."""
    found = explained(jobs.ddp(late_us=(0, 300)), tmp_path)
    (one,) = found.collectives
    assert (one.kind, one.num_ranks, one.message_bytes) == ("all_reduce", 2, 2 << 20)
    assert one.calls_per_step_count == 3
    assert one.transfer_s == pytest.approx(900e-6)
    assert one.busbw_gbyte_per_s == pytest.approx((2 << 20) / 900e-6 / 1e9)
    assert one.waiting_s == pytest.approx(one.time_s - one.transfer_s)
    exposed_ns = sum(rank.parts.exposed_communication_ns for rank in found.ranks)
    assert one.exposed_s == pytest.approx(exposed_ns / 1e9 / 3 / 2)


def test_exposed_times_of_collectives_add_up_to_the_part(tmp_path: Path) -> None:
    found = explained(jobs.hsdp(), tmp_path)
    exposed_ns = sum(rank.parts.exposed_communication_ns for rank in found.ranks)
    seconds = exposed_ns / 1e9 / len(found.ranks) / found.num_steps
    assert sum(one.exposed_s for one in found.collectives) == pytest.approx(seconds)


def test_communication_is_told_apart_by_network(tmp_path: Path) -> None:
    """HSDP on two nodes of two: shards stay within a node, replicas span both."""
    traces = traces_of(jobs.hsdp(), tmp_path)
    unknown = explain(traces).exposed_by_network_s()
    assert unknown["inside_nodes"] == unknown["between_nodes"] == 0 < unknown["unknown"]
    found = explain(traces, ranks_per_node=2)
    network = found.exposed_by_network_s()
    assert network["unknown"] == 0
    assert sum(network.values()) == pytest.approx(unknown["unknown"])
    nodes = {each.kind: each.num_nodes for each in found.collectives}
    assert nodes == {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


def test_kernels_beside_communication_are_held_against_the_same_alone(tmp_path: Path) -> None:
    """Rank 0's kernels take 16 % longer while it spins for the late rank 1, whose run alone."""
    job = Job(2)
    for number in range(3):
        with job.step(number):
            for rank in job.ranks:
                job.kernel(rank, 100, name="first")
                job.wait(rank, 20, 7)
            slow = job.ranks[1]
            job.kernel(slow, 9000, name="late", stream=20)
            job.collective("all_reduce", 1 << 20, 50)
            for rank in job.ranks:
                for _ in range(5):
                    job.kernel(rank, 1160 if rank.rank == 0 else 1000, name="gemm")
                job.wait(rank, 7, 20)
                job.synchronise(rank)
    first, second = explained(job, tmp_path).ranks
    assert first.compute_slowdown_ns == 3 * 5 * 160_000
    assert second.compute_slowdown_ns is None or second.compute_slowdown_ns <= 0


def test_a_broadcast_does_not_tell_who_was_late(tmp_path: Path) -> None:
    """Its root may leave before the others have come: the shortest instance proves nothing."""
    job = Job(2)
    with job.step(0):
        for rank in job.ranks:
            job.kernel(rank, 100 + 500 * rank.rank)
            job.wait(rank, 20, 7)
        job.collective("broadcast", 1 << 20, 300)
        for rank in job.ranks:
            job.synchronise(rank)
    found = explained(job, tmp_path)
    assert found.ranks[0].parts.straggler_wait_ns == 0
    assert found.ranks[0].parts.exposed_communication_ns == 800_000
    assert found.stragglers == ()


def test_a_range_around_the_whole_step_is_no_wait(tmp_path: Path) -> None:
    """`run_training_batch` has a word of loading in its name, and launches all of the step."""
    job = Job(1)
    for number in range(2):
        with job.step(number):
            (rank,) = job.ranks
            with job.under(rank, "run_training_batch"):
                for _ in range(4):
                    job.sleep(rank, 1000)
                    job.kernel(rank, 500)
            job.synchronise(rank)
    (rank_found,) = explained(job, tmp_path).ranks
    assert rank_found.parts.data_wait_ns == 0
    assert rank_found.parts.host_idle_ns > 3_000_000
    assert rank_found.steps[0].idle_names_ns["run_training_batch"] > 1_500_000


def test_who_bounds_a_step_is_told(tmp_path: Path) -> None:
    ahead = explained(jobs.ddp(is_synchronising=False), tmp_path)
    assert {step.bound_by for step in ahead.ranks[0].steps} == {"gpu"}
    slow = explained(jobs.ddp(plant=jobs.slept(9000, at="optimizer")), tmp_path)
    assert {step.bound_by for step in slow.ranks[0].steps} == {"cpu"}


@pytest.mark.parametrize("what", ["count", "kind", "bytes"])
def test_ranks_that_do_not_agree_are_refused(what: str, tmp_path: Path) -> None:
    job = jobs.ddp()
    documents = [job.document(rank) for rank in (0, 1)]
    kernels = [e for e in documents[1]["traceEvents"] if "Collective name" in e.get("args", {})]
    if what == "count":
        documents[1]["traceEvents"].remove(kernels[4])
    elif what == "kind":
        kernels[4]["args"]["Collective name"] = "_allgather_base"
    else:
        kernels[4]["args"] |= {"In msg nelems": 17, "Out msg nelems": 17}
    with pytest.raises(InputError) as refused:
        explain(read_documents(documents, tmp_path))
    said = str(refused.value)
    assert "of group `0` [0, 1] in step 1" in said
    assert "rank0.json" in said
    assert "rank1.json" in said
    assert "hint:" in said


def read_documents(documents: list[dict[str, object]], folder: Path) -> list[RankTrace]:
    import json

    paths = [folder / f"rank{rank}.json" for rank in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return [read_trace(path) for path in paths]


def test_two_traces_of_one_rank_are_refused(tmp_path: Path) -> None:
    traces = traces_of(jobs.ddp(), tmp_path)
    with pytest.raises(InputError, match="two traces of rank 0") as refused:
        explain([traces[0], traces[0]])
    assert "--against" in str(refused.value)


def test_traces_without_a_common_step_are_refused(tmp_path: Path) -> None:
    (early, _), (_, late) = (
        traces_of(jobs.ddp(steps=steps, first_traced=first), tmp_path)
        for steps, first in ((2, 0), (4, 2))
    )
    with pytest.raises(InputError, match="no step in common") as refused:
        explain([early, late])
    assert "steps 2 to 3" in str(refused.value)


def test_wanted_steps_are_taken_alone(tmp_path: Path) -> None:
    traces = traces_of(jobs.ddp(steps=5), tmp_path)
    found = explain(traces, step_numbers=[2, 3])
    assert found.step_numbers == (2, 3)
    with pytest.raises(InputError, match="no step 7"):
        explain(traces, step_numbers=[7])


def test_a_trace_without_steps_is_one_step_and_says_so(tmp_path: Path) -> None:
    document = jobs.ddp().document(0)
    events = document["traceEvents"]
    document["traceEvents"] = [e for e in events if "ProfilerStep" not in e.get("name", "")]
    (trace,) = read_documents([document], tmp_path)
    found = explain([trace])
    assert not found.has_steps
    assert found.num_steps == 1
    assert "not told of steps" in " ".join(found.notes)
    (step,) = found.ranks[0].steps
    assert step.parts.total_ns == step.duration_ns
