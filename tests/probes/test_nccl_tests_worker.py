"""Do ranks run nccl-tests, and does a trial say what it measured? With a fake of its programs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bytes_on_wire import assert_explained
from tests.e2e.driving import wait_until
from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.messages.payload import payload_rate_gbps
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_plan import Programs
from broadgauge.probes.nccl_tests.output import read_text
from broadgauge.specs.launching import LaunchRequest, TrialRequest
from broadgauge.specs.records.op_rows import NcclTestsRow
from broadgauge.specs.records.record import ErrorKind, Status
from broadgauge.specs.time_limits import TimeLimits
from broadgauge.specs.workloads.workload import CollectivesWorkload

from .harness import Ranks
from .nccl_tests_programs import build

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"),
]
PLANTED = (sys.executable, str(Path(__file__).parent / "planted_nccl_tests.py"))
WORKLOAD = CollectivesWorkload(
    kind="collectives",
    engine="nccl-tests",
    ops=("all_reduce",),
    sizes=(1024, 2**18),
    min_iterations=7,
    max_iterations=7,
    budget_s=0.02,
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """By what they write: the table only, or JSON too where they are asked with -J."""
    folder = tmp_path_factory.mktemp("programs")
    build("fake_perf.c", folder / "text/all_reduce_perf")
    build("fake_perf.c", folder / "json/all_reduce_perf", "-DWITH_JSON")
    return folder


def run(folder, tmp_path, workload=WORKLOAD, world_size=2, **variables):
    environment = {"NCCL_TESTS_HOME": str(folder)} | variables
    case = make_case(workload, nodes=world_size)
    with Ranks(world_size, tmp_path, command=PLANTED, environment=environment) as ranks:
        outcome = ranks.run_trial(case)
        logs = ranks.logs()
    return case, outcome, logs


@pytest.mark.parametrize("writes", [pytest.param("text", marks=pytest.mark.slow), "json"])
def test_each_size_is_a_row_with_one_mean_of_the_slowest_rank(programs, writes, tmp_path):
    case, outcome, logs = run(programs / writes, tmp_path, FAKE_TIME="0.004")
    assert outcome.status is Status.OK, logs
    merged = merge(case, outcome, None)
    assert merged.error is None
    rows = merged.measurement.collectives
    assert [(row.measured_by, row.op, row.size_bytes, row.iterations) for row in rows] == [
        ("nccl-tests", "all_reduce", 1024, 7),
        ("nccl-tests", "all_reduce", 2**18, 7),
    ]
    for row in rows:
        assert row.is_correct is True
        assert row.time_s >= 0.008, "rank 1 takes twice 4 ms"
        assert isinstance(row, NcclTestsRow)
        assert row.busbw_gbyte_per_s == row.size_bytes / row.time_s / 1e9  # two ranks
        # The made-up counters grow by 20 MB from mark to mark.
        assert row.wire_bytes == pytest.approx(20e6 / 7)
    assert merged.measurement.metrics["latency_s"] is None
    assert "no latency" in merged.measurement.missing["latency_s"]
    assert "iteration_time_s" not in merged.series, "a mean says nothing of single iterations"
    assert all(node.foreign_busy_ratio is None for node in merged.measurement.nodes)
    # The log has the tables: what was said is what they say, within their two decimals.
    tables = [line for line in logs.splitlines() if line.split()[2:3] == ["float"]]
    printed = read_text("\n".join([*tables, "# Out of bounds values : 0"]), "x").rows
    assert [row.time_s for row in rows] == pytest.approx([r.time_s for r in printed], abs=6e-9)
    assert "device  0" in logs
    assert "device  1" not in logs  # each is local rank 0 of its node
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["rank0.log", "rank1.log"], "nothing is left beside the logs"


@pytest.mark.slow
def test_a_second_trial_has_its_own_marks_and_unchecked_is_unknown(programs, tmp_path):
    environment = {"NCCL_TESTS_HOME": str(programs / "json")}
    case = make_case(WORKLOAD.model_copy(update={"check": False}), nodes=1)
    with Ranks(1, tmp_path, command=PLANTED, environment=environment) as ranks:
        for number in range(2):
            outcome = ranks.run_trial(case, trial_id=f"t{number}")
            assert outcome.status is Status.OK, ranks.logs()
            labels = [mark.label for mark in outcome.marks]
            assert len(labels) == len(set(labels))
            rows = merge(case, outcome, None).measurement.collectives
            assert [row.is_correct for row in rows] == [None, None]


def test_a_wrong_result_fails_the_trial_and_keeps_its_figures(programs, tmp_path):
    case, outcome, logs = run(programs / "json", tmp_path, FAULT="wrong", FAULT_RANK="1")
    assert outcome.status is Status.OK, logs
    merged = merge(case, outcome, None)
    assert merged.error is not None
    assert merged.error.kind is ErrorKind.WRONG_RESULT
    assert [row.is_correct for row in merged.measurement.collectives] == [False, False]


def test_a_crash_is_told_with_its_last_lines(programs, tmp_path):
    _, outcome, _ = run(programs / "text", tmp_path, FAULT="crash", FAULT_RANK="1")
    assert outcome.error is not None
    assert outcome.error.rank == 1
    assert "nccl-tests ended with exit code 3" in outcome.error.message
    assert "fake NCCL failure" in outcome.error.message


def test_without_a_program_the_trial_is_refused(tmp_path):
    case = make_case(WORKLOAD, nodes=1)
    environment = {"NCCL_TESTS_HOME": str(tmp_path)}
    with Ranks(1, tmp_path, command=PLANTED, environment=environment) as ranks:
        error = ranks.run_trial(case).error
    assert error is not None
    assert error.kind is ErrorKind.REFUSED
    assert f"all_reduce_perf of nccl-tests is not in {tmp_path}" in error.message
    assert "make -j MPI=1 MPI_HOME=" in error.message


@pytest.mark.parametrize(
    ("device", "backend"), [("cpu", "gloo"), ("cuda", "gloo"), ("cpu", "nccl")]
)
def test_only_nccl_on_gpus_is_measured(device, backend):
    from broadgauge.probes.nccl_tests.probe import refuse_elsewhere
    from broadgauge.probes.trial import RefusedError

    case = make_case(WORKLOAD).model_copy(update={"device": device, "backend": backend})
    with pytest.raises(RefusedError, match=r"measures NCCL on GPUs.*`engine: torch`"):
        refuse_elsewhere(case, WORKLOAD)
    gpus = case.model_copy(update={"device": "cuda", "backend": "nccl"})
    refuse_elsewhere(gpus, WORKLOAD)
    with pytest.raises(RefusedError, match="no `pairwise`"):
        refuse_elsewhere(gpus, WORKLOAD.model_copy(update={"pairwise": True}))


def run_on_nodes(folder, tmp_path, workload, measure_s=120, **variables):
    """A launch of two emulated nodes with 1 Gbit/s between them."""
    environment = {"NCCL_TESTS_HOME": str(folder), "FAKE_PORT": "4711", "FAKE_TIME": "0"}
    case = make_case(workload).model_copy(update={"environment": environment | variables})
    request = LaunchRequest(
        launch_id="b0.0",
        cases=(case,),
        cores_per_node=1,
        limits=TimeLimits(rendezvous_s=280, warm_up_s=120, measure_s=measure_s, teardown_s=10),
    )
    folders = LaunchFolders(logs=tmp_path / "logs", working=tmp_path)
    platform = EmulatedPlatform(folders, programs=Programs(worker=PLANTED))
    launch = platform.start(request, lambda *_: None)
    try:
        outcome = launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=1), lambda *_: None)
    finally:
        launch.close()
    return case, outcome


@pytest.mark.slow
@pytest.mark.namespaces
def test_the_bytes_counted_are_those_of_the_timed_iterations(programs, tmp_path):
    """The fake's last rank sends S an iteration to rank 0, also in warm-up, check and in place: of
    all it sends only 7 of 20 messages are timed out of place."""
    workload = WORKLOAD.model_copy(update={"sizes": (2**20,)})
    case, outcome = run_on_nodes(programs / "json", tmp_path, workload)
    assert outcome.status is Status.OK, outcome.error
    measured = merge(case, outcome, None).measurement
    (row,) = measured.collectives
    num_retransmits = measured.metrics["retransmits_count"]
    assert row.wire_bytes is not None
    assert num_retransmits is not None
    assert_explained(
        row.wire_bytes,
        2**20 / payload_rate_gbps(1.0, 1500),
        num_retransmits=num_retransmits / row.iterations,
    )
    left = [path.name for path in (tmp_path / "logs").iterdir()]
    assert not any("nccl-tests" in name for name in left)


@pytest.mark.thorough
@pytest.mark.namespaces
def test_a_hang_ends_at_the_phase_s_limit_and_leaves_nothing(programs, tmp_path):
    workload = WORKLOAD.model_copy(update={"sizes": (1024,)})
    _, outcome = run_on_nodes(
        programs / "json", tmp_path, workload, measure_s=2, FAULT="hang", FAULT_RANK="1"
    )
    assert outcome.status is Status.TIMEOUT
    assert outcome.error is not None
    assert "nccl-tests all_reduce float32 1 KiB" in outcome.error.message
    wait_until(lambda: not lives(programs / "json/all_reduce_perf"))


def lives(program):
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return str(program) in listed.stdout
