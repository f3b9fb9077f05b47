"""Do comparisons pair what was interleaved, and say what they can't tell?"""

from pathlib import Path

from broadgauge.results.comparing.compare_cases import (
    against_reference,
    compare_cases,
    compare_runs,
)
from broadgauge.results.model import RunSummary
from broadgauge.results.statistics import ComparisonVerdict
from broadgauge.results.summary import summarise_run
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Environment, GpuFacts, NodeFacts, Record, Status
from broadgauge.specs.workloads.workload import (
    CommandMetric,
    CommandWorkload,
    TrainWorkload,
    Workload,
)

SLOW = Network(name="slow", rate_gbps=0.2)
FAST = Network(name="fast", rate_gbps=1.0)
REFERENCE = Network(name="reference")
TRAIN = TrainWorkload(kind="train")


def a_case(network: Network | None, workload: Workload = TRAIN) -> Case:
    return Case(
        workload=workload,
        network=network,
        nodes=1 if network is None else 2,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
    )


def a_run(
    steps: list[tuple[Case, list[float]]],
    *,
    metric: str = "step_time_s",
    environments: dict[str, Environment] | None = None,
) -> RunSummary:
    """The k-th value of a case ran in block k, the cases in turns."""
    records = [
        Record(
            record_id=f"b{block}.{number}",
            case_key=case.key,
            workload=case.workload.name,
            network=case.network_name,
            shape=case.shape,
            launch_id=f"b{block}.{number}",
            block=block,
            trial=0,
            position=(number + block) % len(steps),
            started_unix_s=1.0,
            ended_unix_s=2.0,
            status=Status.OK,
            metrics={metric: value},
        )
        for number, (case, values) in enumerate(steps)
        for block, value in enumerate(values)
    ]
    plan = Plan(
        experiment_name="x",
        seed=0,
        cases=tuple(case for case, _ in steps),
        launches=(),
        expected_s=1,
    )
    return summarise_run(
        folder=Path("nowhere"),
        plan=plan,
        records=records,
        experiment_yaml="",
        environments=environments or {},
    )


def an_environment(**changes: object) -> Environment:
    facts = {
        "broadgauge": "0.1.0",
        "platform": "emulated",
        "python": "3.11",
        "torch": "2.11.0",
        "kernel": "6.1",
        "cores": 2,
        "memory_bytes": 2**33,
    }
    return Environment(**(facts | changes))


def test_pairs_cancel_what_a_block_shares() -> None:
    weather = [1.0, 2.0, 1.3, 0.9, 1.6]
    noise = [1.0, 1.001, 0.999, 1.0, 1.0005]
    run = a_run(
        [
            (a_case(REFERENCE), weather),
            (a_case(SLOW), [w * 1.05 * n for w, n in zip(weather, noise, strict=True)]),
        ]
    )
    row = compare_cases(run.cases[0], run.cases[1], "step_time_s")
    assert row is not None
    assert row.is_paired
    assert row.comparison is not None
    assert row.comparison.verdict is ComparisonVerdict.DIFFERENT
    assert abs(row.comparison.ratio.value - 1.05) < 0.005


def test_a_case_without_the_metric_is_not_compared() -> None:
    run = a_run([(a_case(REFERENCE), [1.0]), (a_case(SLOW), [])])
    assert compare_cases(run.cases[0], run.cases[1], "step_time_s") is None


def test_the_reference_is_the_unshaped_network_else_the_fastest() -> None:
    steps = [1.0, 1.1, 1.0]
    run = a_run([(a_case(SLOW), steps), (a_case(REFERENCE), steps), (a_case(FAST), steps)])
    rows = against_reference(run)
    assert {(row.a_label, row.b_label) for row in rows} == {
        ("train 2x1 reference", "train 2x1 slow"),
        ("train 2x1 reference", "train 2x1 fast"),
    }
    shaped = a_run([(a_case(SLOW), steps), (a_case(FAST), steps), (a_case(None), steps)])
    assert [row.a_label for row in against_reference(shaped)] == ["train 2x1 fast"]
    assert against_reference(a_run([(a_case(SLOW), steps), (a_case(None), steps)])) == ()


def test_two_runs_are_never_paired_and_it_is_said() -> None:
    a = a_run([(a_case(SLOW), [1.0, 1.01, 0.99, 1.0, 1.0])])
    b = a_run([(a_case(SLOW), [1.2, 1.21, 1.19, 1.2, 1.2])])
    comparison = compare_runs(a, b)
    (row,) = comparison.rows
    assert not row.is_paired
    assert row.comparison is not None
    assert row.comparison.verdict is ComparisonVerdict.DIFFERENT
    assert any("not interleaved" in note for note in row.notes)
    assert any("not interleaved" in note for note in comparison.notes)


def test_a_single_launch_is_never_a_verdict_across_runs() -> None:
    comparison = compare_runs(a_run([(a_case(SLOW), [1.0])]), a_run([(a_case(SLOW), [9.0])]))
    (row,) = comparison.rows
    assert row.comparison is not None
    assert row.comparison.verdict is ComparisonVerdict.CANNOT_TELL


def test_cases_match_by_key_and_the_others_are_named() -> None:
    renamed = Network(name="another-name", rate_gbps=0.2)
    a = a_run([(a_case(SLOW), [1.0, 1.1]), (a_case(FAST), [1.0])])
    b = a_run([(a_case(renamed), [1.0, 1.1]), (a_case(REFERENCE), [1.0])])
    comparison = compare_runs(a, b)
    assert len(comparison.rows) == 1
    assert comparison.only_in_a == ("train 2x1 fast",)
    assert comparison.only_in_b == ("train 2x1 reference",)


def test_environments_that_differ_are_named() -> None:
    gpus = (GpuFacts(name="NVIDIA H200", memory_bytes=10**11),)
    a = a_run([(a_case(SLOW), [1.0])], environments={"1": an_environment()})
    b = a_run(
        [(a_case(SLOW), [1.0])],
        environments={
            "2": an_environment(torch="2.10.0", gpus=gpus, variables={"NCCL_NSOCKS": "4"})
        },
    )
    assert compare_runs(a, b).environment_differences == (
        "torch: 2.11.0 in A, 2.10.0 in B",
        "gpus: none in A, NVIDIA H200 in B",
        "NCCL_NSOCKS: not set in A, 4 in B",
    )
    assert any("environments differ" in note for note in compare_runs(a, b).notes)
    assert compare_runs(a, a).environment_differences == ()


def test_hosts_that_differ_are_named_in_words() -> None:
    host = NodeFacts(nodes=(0,), hostnames=("gpu0",), kernel="6.8", cores=8, memory_bytes=2**34)
    a, b = (
        a_run(
            [(a_case(SLOW), [1.0])],
            environments={"1": an_environment(nodes=(host.model_copy(update={"cores": cores}),))},
        )
        for cores in (8, 4)
    )
    (told,) = compare_runs(a, b).environment_differences
    assert told.startswith("nodes: node 0 (gpu0): 8 cores")
    assert "in A, node 0 (gpu0): 4 cores" in told


def test_the_users_own_metric_has_the_users_direction() -> None:
    metric = CommandMetric(name="images_per_s", regex=r"(\d+) images", lower_is_better=False)
    command = CommandWorkload(kind="command", command=("train.py",), metrics=(metric,))
    run = a_run([(a_case(SLOW, command), [5.0, 6.0, 5.5])], metric="images_per_s")
    (row,) = compare_runs(run, run).rows
    assert (row.metric, row.direction) == ("images_per_s", "higher")


def test_values_that_are_not_positive_have_no_ratio() -> None:
    metric = CommandMetric(name="gain_s", regex="(.)")
    command = CommandWorkload(kind="command", command=("train.py",), metrics=(metric,))
    run = a_run([(a_case(SLOW, command), [-1.0, 2.0, 1.0])], metric="gain_s")
    (row,) = compare_runs(run, run).rows
    assert row.comparison is None
    assert row.notes == ("no ratio: a value is zero or negative",)
