"""Do real ranks over Gloo agree on what they save and load, and leave nothing behind?"""

import sys
from pathlib import Path

import pytest
from tests.probes.harness import Ranks
from tests.probes.storage.scripted import command_of, on

from broadgauge.messages.storage import CheckpointPlan, ModelPlan, StorageTask
from broadgauge.messages.tasks import RankLayout
from broadgauge.specs.record import Status

pytestmark = pytest.mark.measuring
MIB = 2**20
LAYOUT = RankLayout(nodes=1, ranks_per_node=2, device="cpu", backend="gloo")
PLANTED = Path(__file__).parent / "storage_rank.py"
MODEL = ModelPlan(
    model_bytes=2 * MIB,
    formats=("safetensors", "dcp"),
    load_by=("every-rank", "rank0-broadcast"),
)
CHECKPOINT = CheckpointPlan(
    checkpoint_bytes=2 * MIB,
    formats=("torch", "safetensors", "dcp", "dcp-async"),
    is_sharded=True,
    saves=1,
)


def run(ranks: Ranks, folder: Path, checkpoint: CheckpointPlan, limit_s: float = 60):
    task = StorageTask(
        place=on(folder, is_shared=True),
        caches=("cold",),
        most_bytes=256 * MIB,
        model_loading=MODEL,
        checkpoint_saving=checkpoint,
    )
    return ranks.run_command(command_of(task, LAYOUT, limit_s, trial_id=folder.name))


def said(outcome, kind: str) -> list[dict]:
    """By rank, all of them in one list."""
    return [
        {"rank": rank, **message}
        for rank, messages in enumerate(outcome.messages)
        for message in messages
        if message.get("kind") == kind
    ]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Ranks(2, tmp_path_factory.mktemp("pair"), ranks_per_node=2) as ranks:
        yield ranks


@pytest.mark.parametrize("is_sharded", [True, False])
def test_both_ranks_save_and_load_and_say_the_same_time_to_durable(pair, tmp_path, is_sharded):
    plan = CheckpointPlan(
        checkpoint_bytes=2 * MIB, formats=CHECKPOINT.formats, is_sharded=is_sharded, saves=1
    )
    outcome = run(pair, tmp_path, plan)
    assert outcome.status is Status.OK, pair.logs()
    assert said(outcome, "storage_problem") == []
    blocks = said(outcome, "storage")
    assert len(blocks) == 2 * (4 + 4)
    for format in CHECKPOINT.formats:
        first, second = (
            each
            for each in blocks
            if each["variant"].split(",")[0] == format and each["phase"] == "checkpoint_saving"
        )
        assert first["durable_s"] == second["durable_s"]
        assert first["num_bytes"] + second["num_bytes"] == 2 * MIB
        assert second["num_bytes"] == (MIB if is_sharded else 0)
        assert ("gather" in first["parts_s"]) == (not is_sharded)
    for block in blocks:
        if block["variant"].endswith("rank0-broadcast"):
            assert "broadcast" in block["parts_s"]
            assert (block["num_bytes"] > 0) == (block["rank"] == 0)
    assert list(tmp_path.iterdir()) == []


def test_a_storage_that_hangs_on_one_rank_is_left_by_both(tmp_path):
    folder = tmp_path / "storage"
    folder.mkdir()
    scripts = {0: (sys.executable, str(PLANTED), "hang")}
    with Ranks(2, tmp_path, ranks_per_node=2, scripts=scripts) as ranks:
        outcome = run(ranks, folder, CHECKPOINT, limit_s=4)
        assert outcome.status is Status.OK, ranks.logs()
    assert [each["rank"] for each in said(outcome, "storage")] == [1]  # which read it alone
    problems = said(outcome, "storage_problem")
    assert any("no answer for" in each["message"] for each in problems)
    assert {each["rank"] for each in problems} == {0, 1}
