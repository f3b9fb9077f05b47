"""Do real ranks train as one process would, and is every planted delay found as what it is?"""

import re
import statistics
import sys

import pytest
from tests.merging.outcomes import make_case

from broadgauge.specs.records.record import ErrorKind, Status
from broadgauge.specs.workloads.workload import GptModel, Packing, PreparedData
from broadgauge.tokenizing.synthetic_set import parse_synthetic, prepare_synthetic

from .harness import Ranks
from .training_launch import PLANTED, WORKLOAD, Launch

pytestmark = pytest.mark.measuring
DELAY_S = 0.023
"""As tests/probes/planted.py plants it."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Ranks(2, tmp_path_factory.mktemp("pair")) as ranks:
        yield Launch(ranks)


@pytest.fixture(scope="module")
def two(pair):
    return pair.train()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process on the global batch of four sequences, 30 steps with its warm-up."""
    with Ranks(1, tmp_path_factory.mktemp("alone")) as ranks:
        return Launch(ranks).train(batch_per_rank=4)


def train_with(folder, faults, **changes):
    """The merged trial of ranks with faults planted."""
    scripts = {rank: (sys.executable, PLANTED, fault) for rank, fault in faults.items()}
    with Ranks(2, folder, scripts=scripts) as ranks:
        return Launch(ranks).train(**changes)


@pytest.mark.parametrize("world_size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_together_train_as_one_process(world_size, alone, two, tmp_path):
    together = two
    if world_size == 4:
        with Ranks(4, tmp_path) as ranks:
            together = Launch(ranks).train(batch_per_rank=1)
    assert together.error is None
    assert len(together.series["loss"]) == 28
    assert together.series["loss"] == pytest.approx(alone.series["loss"], abs=1e-4)
    assert statistics.fmean(alone.series["loss"][-5:]) < alone.series["loss"][0] - 0.1


def test_steps_without_communication_leave_no_trace(pair, two):
    undisturbed = pair.train(communication_off=False, block_steps=28)
    assert two.series["loss"] == undisturbed.series["loss"]
    assert len(two.series["step_without_communication_s"]) == 28
    assert "step_without_communication_s" not in undisturbed.series


def test_the_switchable_hook_is_plain_ddp(two, tmp_path):
    faults = {0: "use_plain_ddp", 1: "use_plain_ddp"}
    plain = train_with(tmp_path, faults, communication_off=False)
    assert two.series["loss"] == plain.series["loss"]


def test_bfloat16_arithmetic_trains_too(pair, two):
    trial = pair.train(dtype="bfloat16")
    assert trial.series["loss"] != two.series["loss"]
    assert trial.series["loss"] == pytest.approx(two.series["loss"], rel=0.1)


def test_no_planted_delay_is_missed(tmp_path):
    """Rank 1 sleeps in every second step, rank 0 where communication is on: the slowest rank's
    time is a step's, and a sleep is never shorter than it says."""
    faults = {0: "sleep_when_communicating", 1: "sleep_in_every_second_step"}
    trial = train_with(tmp_path, faults, steps=4, block_steps=2)
    assert len(trial.series["step_time_s"]) == 4
    assert min(trial.series["step_time_s"]) >= DELAY_S
    off_s = trial.series["step_without_communication_s"]
    assert min(off_s[1::2]) >= DELAY_S


@pytest.mark.measured
@pytest.mark.slow
def test_a_planted_delay_in_a_step_is_found(tmp_path):
    """Rank 1 sleeps 23 ms in every second step: the slowest rank's time shows it."""
    trial = train_with(tmp_path, {1: "sleep_in_every_second_step"}, communication_off=False)
    step_s = trial.series["step_time_s"]
    first = WORKLOAD.warm_up_steps
    odd = [s for index, s in enumerate(step_s, first) if index % 2]
    even = [s for index, s in enumerate(step_s, first) if not index % 2]
    assert statistics.median(odd) - statistics.median(even) == pytest.approx(0.023, rel=0.25)


@pytest.mark.measured
def test_a_planted_delay_of_communication_is_its_cost(tmp_path):
    """Rank 0 sleeps 23 ms where communication is on: that, and little more, is the cost."""
    trial = train_with(tmp_path, {0: "sleep_when_communicating"})
    on_s = statistics.median(trial.series["step_time_s"])
    off_s = statistics.median(trial.series["step_without_communication_s"])
    assert 0.02 < on_s - off_s < 0.045
    assert trial.measurement.metrics["network_cost_s"] > 0.02


@pytest.mark.slow
def test_ranks_that_end_apart_fail_the_trial(tmp_path):
    trial = train_with(tmp_path, {1: "train_apart"}, steps=4)
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.WRONG_RESULT
    assert trial.error.rank == 1


def run_to_failure(folder, fault=None, **changes):
    """Two ranks of which rank 1 has a fault, or one rank of a case that can't run."""
    scripts = {1: (sys.executable, PLANTED, fault)} if fault else {}
    num_ranks = 2 if fault else 1
    case = make_case(WORKLOAD.model_copy(update=changes), nodes=num_ranks)
    with Ranks(num_ranks, folder, scripts=scripts) as ranks:
        outcome = ranks.run_trial(case)
        return outcome, ranks.logs(), ranks.ranks


def test_an_exception_is_reported_and_the_rank_ends(tmp_path):
    outcome, logs, ranks = run_to_failure(tmp_path, "raise_before_the_first_step")
    told = [m for m in outcome.messages[1] if m["type"] == "failed"]
    assert told[0]["kind"] == "crashed"
    assert re.fullmatch(
        r"crashed at \S+/planted\.py:\d+ in fail: ValueError: planted", told[0]["message"]
    )
    assert "Traceback" in logs
    assert ranks[1].process.wait(10) == 1


@pytest.mark.slow
def test_a_rank_that_is_gone_ends_the_others(tmp_path):
    outcome, _, ranks = run_to_failure(tmp_path, "leave_before_the_first_step")
    assert outcome.status is Status.FAILED
    assert ranks[1].process.wait(10) == 7


def test_a_model_too_large_for_the_memory_is_refused(tmp_path):
    huge = GptModel(layers=512, hidden=65_536, heads=8, seq_len=16)
    outcome, _, _ = run_to_failure(tmp_path, model=huge)
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.REFUSED
    assert outcome.error.message.startswith("out of memory: 26,")


def test_ranks_with_different_sets_under_one_path_are_refused(tmp_path):
    """By both ranks, before either waits for the other in a step."""
    folders = tmp_path / "set", tmp_path / "set-elsewhere"
    keys = [
        prepare_synthetic(parse_synthetic(f"samples={n},mean_length=8"), folder).described.key
        for n, folder in zip((20, 21), folders, strict=True)
    ]
    packing = Packing(max_batch_len=64, effective_batch_size=8)
    case = make_case(
        WORKLOAD.model_copy(
            update={"data": PreparedData(prepared=str(folders[0])), "packing": packing}
        )
    )
    scripts = {1: (sys.executable, PLANTED, "read_another_set")}
    with Ranks(2, tmp_path, scripts=scripts) as ranks:
        outcome = ranks.run_trial(case, hear_all=True)
    told = [m for messages in outcome.messages for m in messages if m["type"] == "failed"]
    assert [each["kind"] for each in told] == ["refused"] * 2
    words = rf"rank 1 prepared set {keys[1]}: 21 samples.*; rank 0 prepared set {keys[0]}: 20"
    assert all(re.search(words, each["message"]) for each in told)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "can't be read: No such file"), (b"short", "has 5 bytes")]
)
def test_a_text_that_can_not_serve_is_refused(content, words, tmp_path):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    outcome, _, _ = run_to_failure(tmp_path, text=str(path))
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.REFUSED
    assert words in outcome.error.message


def test_a_text_of_the_user_is_read(pair, two, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"a" * 1000)
    trial = pair.train(text=str(path))
    assert trial.series["loss"][-1] < two.series["loss"][-1] - 0.5
