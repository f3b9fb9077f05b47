"""Is a path inside the node held against the fastest one, and said to be what was used?"""

import pytest
from tests.results import simulated_experiments as made

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.results.model import RunSummary
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import NodePath
from broadgauge.specs.records.record import PathFacts
from broadgauge.specs.workloads.workload import CollectivesWorkload

WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995)


def on_path(path: str, *, is_training: bool = True) -> Case:
    changes: dict[str, object] = {
        "network": NodePath(name=path, path=path),
        "ranks_per_node": 2,
        "device": "cuda",
        "backend": "nccl",
    }
    if not is_training:
        changes["workload"] = CollectivesWorkload(kind="collectives")
    return made.network_case("x", nodes=1).model_copy(update=changes)


def a_run(levels: dict[str, float], *, is_training: bool = True, launches: int = 5) -> RunSummary:
    cases = [on_path(path, is_training=is_training) for path in levels]
    values = [[level * w for w in WIGGLE[:launches]] for level in levels.values()]
    metric = "step_time_s" if is_training else "busbw_gbyte_per_s"
    return made.run_of(cases, values, metric)


def judged(run: RunSummary) -> list[Verdict]:
    return [verdict(summary, run) for summary in run.cases]


def test_collectives_are_held_against_the_fastest_path() -> None:
    fast, slow = judged(a_run({"nvlink": 300.0, "sockets": 3.0}, is_training=False))
    assert fast.bound is slow.bound is Bound.HOST
    assert "the fastest of 2 paths" in fast.sentence
    assert "0.01 (0.01 to 0.01) times as fast as over nvlink" in slow.sentence


def test_a_slower_step_is_fewer_times_as_fast() -> None:
    """Time is inverted; the fastest is as measured, whatever the paths are called."""
    nvlink, shm = judged(a_run({"nvlink": 2.0, "shm": 1.0}))
    assert "0.5 (0.5 to 0.5) times as fast as over shm" in nvlink.sentence
    assert "the fastest of 2 paths" in shm.sentence


def test_a_single_path_or_few_launches_are_said() -> None:
    (alone,) = judged(a_run({"nvlink": 300.0}, is_training=False))
    assert "fast" not in alone.sentence
    _, slow = judged(a_run({"nvlink": 300.0, "shm": 30.0}, is_training=False, launches=1))
    assert "0.1 times as fast as over nvlink" in slow.sentence
    assert slow.sentence.endswith("from only 1 launch")


@pytest.mark.parametrize(("share", "bound"), [(0.1, Bound.COMPUTE), (0.6, Bound.HOST)])
def test_the_share_of_a_step_decides_a_training(share: float, bound: Bound) -> None:
    case = on_path("shm")
    run = made.run_of([case], [[share] * 5], "network_share_ratio")
    (found,) = judged(run)
    assert found.bound is bound
    assert "waits for communication inside the node" in found.sentence


def test_what_was_really_used_is_evidence() -> None:
    run = a_run({"nvlink": 300.0}, is_training=False)
    records = [
        r.model_copy(
            update={"path": PathFacts(used="nvlink", channels_count=24, evidence=("via P2P",))}
        )
        for r in run.records
    ]
    again = summarise_run(
        folder=run.folder, plan=run.plan, records=records, experiment_yaml="", environments={}
    )
    (found,) = judged(again)
    assert found.evidence == ("nvlink over 24 channels, in 5 of 5 trials", "via P2P")
