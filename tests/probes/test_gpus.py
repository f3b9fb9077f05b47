"""Do the probes hold on two GPUs with NCCL? Run by hand where there are such: pytest -m gpu."""

import re
import statistics
import sys
from pathlib import Path

import pytest
from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.specs.records.record import ErrorKind, Status
from broadgauge.specs.workloads.workload import CollectivesWorkload, GptModel, TrainWorkload

from .harness import Ranks

pytestmark = [pytest.mark.gpu, pytest.mark.measuring]
PLANTED = str(Path(__file__).parent / "planted.py")
MODEL = GptModel(layers=12, hidden=1024, heads=16, seq_len=512)


def on_two_gpus(workload):
    return make_case(workload, nodes=1, ranks_per_node=2, device="cuda")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Ranks(2, tmp_path_factory.mktemp("pair"), ranks_per_node=2, is_forked=False) as ranks:
        yield ranks


def measure(pair, workload, trial_id, peak_flops=None):
    case = on_two_gpus(workload)
    outcome = pair.run_trial(case, trial_id=trial_id)
    assert outcome.status is Status.OK, pair.logs()
    return merge(case, outcome, peak_flops)


def test_all_reduce_of_256_mb_is_within_2_percent_of_the_bare_call(tmp_path):
    workload = CollectivesWorkload(
        kind="collectives",
        ops=("all_reduce",),
        sizes=(256_000_000,),
        warm_up_iterations=20,
        min_iterations=200,
        max_iterations=400,
    )
    scripts = dict.fromkeys(range(2), (sys.executable, PLANTED, "compare_with_raw_calls"))
    with Ranks(2, tmp_path, ranks_per_node=2, scripts=scripts, is_forked=False) as ranks:
        case = on_two_gpus(workload)
        outcome = ranks.run_trial(case)
        assert outcome.status is Status.OK, ranks.logs()
    trial = merge(case, outcome, None)
    raw = re.findall(r"raw (\d{3,}) (\S+) measured (\S+)", ranks.logs())
    row = trial.measurement.collectives[0]
    raw_s = max(float(seconds) for _, seconds, _ in raw)
    sys.stdout.write(f"{row}\nraw {raw}\nratio {row.time_s / raw_s}\n")
    assert row.is_correct
    assert row.time_s == pytest.approx(raw_s, rel=0.02)


def test_all_collectives_are_right(pair):
    workload = CollectivesWorkload(
        kind="collectives",
        sizes=(8, 2**20, 2**28),
        dtypes=("float32", "bfloat16"),
        budget_s=0.05,
    )
    trial = measure(pair, workload, "collectives")
    for row in trial.measurement.collectives:
        sys.stdout.write(f"{row}\n")
    assert trial.error is None
    assert all(row.is_correct for row in trial.measurement.collectives)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_and_its_network_cost(pair, dtype):
    workload = TrainWorkload(kind="train", model=MODEL, batch_per_rank=8, dtype=dtype)
    trial = measure(pair, workload, dtype, peak_flops=989e12)
    sys.stdout.write(f"{trial.measurement.metrics}\n{trial.series}\n")
    assert trial.error is None
    metrics = trial.measurement.metrics
    assert 0.9 < statistics.fmean(trial.series["step_time_s"]) / metrics["step_time_s"] < 1.1
    assert metrics["network_cost_s"] < 0.3 * metrics["step_time_s"]
    assert 0.02 < metrics["mfu_ratio"] < 0.9
    elapsed_s = sum(trial.series["step_time_s"])
    assert elapsed_s <= trial.measurement.nodes[0].elapsed_s < elapsed_s + 0.5


@pytest.mark.parametrize(
    "changes",
    [{"batch_per_rank": 60_000}, {"model": GptModel(layers=512, hidden=16_384, heads=8)}],
)
def test_what_does_not_fit_is_refused(changes, tmp_path):
    workload = TrainWorkload(kind="train", model=MODEL).model_copy(update=changes)
    with Ranks(2, tmp_path, ranks_per_node=2, is_forked=False) as ranks:
        outcome = ranks.run_trial(on_two_gpus(workload))
    assert outcome.error is not None, ranks.logs()
    assert outcome.error.kind is ErrorKind.REFUSED
    assert outcome.error.message.startswith("out of memory")
    sys.stdout.write(outcome.error.message)
