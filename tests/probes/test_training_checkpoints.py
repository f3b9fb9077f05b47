"""Do real ranks save while they train, with the same losses, and is a slow one found?"""

import json
import statistics
import sys
from pathlib import Path

import pytest
from tests.merging.outcomes import make_case

from broadgauge.advise.storage.training_checkpoints import straggling_checkpoint
from broadgauge.merging.merge import MergedTrial, merge
from broadgauge.specs.case import Case
from broadgauge.specs.checkpoint_rows import last_complete
from broadgauge.specs.lora import Lora
from broadgauge.specs.model_messages import trained_elements
from broadgauge.specs.record import Record, Status
from broadgauge.specs.storage import Storage
from broadgauge.specs.workload import TrainWorkload

from .harness import Ranks
from .training_launch import LIMIT_S, PLANTED, TINY, WORKLOAD

pytestmark = pytest.mark.measuring
MOST_TENSORS, HEAD_BYTES = 120, 2048
"""Of TINY with its optimizer; of each in a file of torch's."""
DISK_S = 0.3
"""As planted.py has it."""
STEPS = {"steps": 12, "block_steps": 6, "warm_up_steps": 2}


def saving_case(folder: Path, *, every_steps: int = 3, **changes) -> Case:
    checkpoints = {"format": "dcp", "keep": 2} | changes.pop("checkpoints", {})
    keys = WORKLOAD.model_dump(exclude_defaults=True) | {"kind": "train"} | STEPS | changes
    keys["checkpoints"] = checkpoints | {"every_steps": every_steps}
    case = make_case(TrainWorkload.model_validate(keys))
    return case.model_copy(
        update={"storage": Storage(name="disk", path=str(folder), is_shared=True)}
    )


class Saving:
    """One launch for several trainings, each on an empty folder."""

    def __init__(self, ranks: Ranks, folder: Path) -> None:
        self.ranks, self.folder, self.trials = ranks, folder, 0

    def train(self, **changes) -> MergedTrial:
        self.trials += 1
        case = saving_case(self.folder, **changes)
        trial = f"t{self.trials}"
        outcome = self.ranks.run_trial(case, trial_id=trial, limit_s=LIMIT_S)
        assert outcome.status is Status.OK, self.ranks.logs()
        assert list(self.folder.iterdir()) == []
        return merge(case, outcome, None)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    (folder / "storage").mkdir()
    with Ranks(2, folder) as ranks:
        yield Saving(ranks, folder / "storage")


@pytest.fixture(scope="module")
def saved(pair):
    return pair.train()


def test_each_save_is_a_row_and_in_no_step(saved):
    found = saved.measurement
    assert [row.after_step for row in found.checkpoints] == [3, 6, 9, 12]
    assert all(row.is_complete and row.stall_s for row in found.checkpoints)
    assert len(saved.series["step_time_s"]) == 12
    gaps = saved.series["checkpoint_stall_s"]
    assert [number for number, gap_s in enumerate(gaps, start=1) if gap_s] == [3, 6, 9, 12]
    assert found.metrics["checkpoint_stall_s"] == pytest.approx(statistics.fmean(gaps) * 3)
    assert found.completion.parts_s["checkpoints"] == pytest.approx(sum(gaps))


def test_its_bytes_are_those_of_weights_and_optimizer(saved):
    """Float32 weights and two moments of each, and what torch writes beside so small tensors."""
    state_bytes = 12 * trained_elements(TINY, None)
    sizes = [row.num_bytes for row in saved.measurement.checkpoints]
    assert state_bytes <= min(sizes)
    assert max(sizes) < state_bytes + MOST_TENSORS * HEAD_BYTES


@pytest.mark.parametrize("format", ["torch", "dcp-async"])
def test_saving_changes_nothing_of_the_training(pair, saved, format):
    trial = pair.train(checkpoints={"format": format, "is_sharded": format != "torch"})
    assert trial.series["loss"] == saved.series["loss"]
    assert [row.is_complete for row in trial.measurement.checkpoints] == [True] * 4


@pytest.mark.parametrize("strategy", ["fsdp", "hsdp"])
def test_shards_are_saved_by_the_rank_that_holds_them(pair, saved, strategy):
    trial = pair.train(strategy=strategy, shard_ranks=None, bucket_cap_bytes=None)
    for row, whole in zip(
        trial.measurement.checkpoints, saved.measurement.checkpoints, strict=True
    ):
        assert row.is_complete
        assert row.num_bytes == pytest.approx(whole.num_bytes, rel=0.3)


def test_of_lora_the_adapters_alone_are_saved(pair, saved):
    trial = pair.train(lora=Lora(rank=2).model_dump())
    wholes = [row.num_bytes for row in saved.measurement.checkpoints]
    assert max(row.num_bytes for row in trial.measurement.checkpoints) < min(wholes) / 2


def record_of(trial: MergedTrial, case: Case, status: Status) -> Record:
    return Record(
        record_id="b0.l0.t0",
        case_key=case.key,
        workload=case.workload.name,
        network="made-up",
        shape=case.shape,
        launch_id="b0.l0",
        block=0,
        trial=0,
        position=0,
        started_unix_s=0,
        ended_unix_s=1,
        status=status,
        **{name: getattr(trial.measurement, name) for name in ("metrics", "checkpoints")},
    )


@pytest.mark.parametrize("format", ["dcp", "dcp-async"])
def test_a_planted_straggler_is_charged_to_the_checkpoint(tmp_path, format):
    """Rank 1's disk takes 0.3 s for each fsync: training waits for that, and neither the steps nor
    the network's cost have any of it."""
    (tmp_path / "storage").mkdir()
    case = saving_case(tmp_path / "storage", every_steps=1, checkpoints={"format": format})
    scripts = {1: (sys.executable, PLANTED, "sync_slowly")}
    with Ranks(2, tmp_path, scripts=scripts) as ranks:
        outcome = ranks.run_trial(case, limit_s=LIMIT_S)
        assert outcome.status is Status.OK, ranks.logs()
    trial = merge(case, outcome, None)
    metrics = trial.measurement.metrics
    assert metrics["checkpoint_stall_s"] > DISK_S > statistics.median(trial.series["step_time_s"])
    (finding,) = straggling_checkpoint(case, record_of(trial, case, Status.OK))
    assert finding.symptom == "all ranks waited for rank 1's checkpoint"


def test_a_rank_lost_in_a_save_leaves_the_one_before(tmp_path):
    (tmp_path / "storage").mkdir()
    case = saving_case(tmp_path / "storage")
    scripts = {1: (sys.executable, PLANTED, "die_in_the_second_save")}
    with Ranks(2, tmp_path, scripts=scripts) as ranks:
        outcome = ranks.run_trial(case, limit_s=LIMIT_S)
    assert outcome.status is Status.FAILED
    rows = merge(case, outcome, None).measurement.checkpoints
    assert [row.after_step for row in rows] == [3, 6]
    assert last_complete(rows) == rows[0]
    (marker,) = (tmp_path / "storage").glob("*/checkpoints/last_durable.json")
    assert json.loads(marker.read_text())["name"] == rows[0].name
