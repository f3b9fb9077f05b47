"""Is NCCL led onto the path that is meant, and is the path that was used told rightly?"""

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.fake_nvml import FakeGpu, FakeNvml, in_a_row
from tests.platforms.launches import make_case, make_folders, make_request, quiet

from broadgauge.doctor.log.reading import read_text
from broadgauge.messages.codec import encode
from broadgauge.messages.rank import CollectiveBlock, StepCollective, StepsBlock, TrainSummary
from broadgauge.messages.vocabulary import StepMode
from broadgauge.platforms import gpu_choice, gpu_watch, path_check
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.local import LocalPlatform
from broadgauge.platforms.nccl_connections import Connection, channels_count, connections_of
from broadgauge.platforms.nvlink import are_joined, sent_and_received_bytes
from broadgauge.platforms.path_check import (
    check_path,
    least_sent_bytes,
    nvlink_use,
    refuse_impossible_path,
)
from broadgauge.platforms.paths import (
    NCCL_VARIABLES,
    NvlinkUse,
    mismatch,
    path_facts,
    paths_between_gpus,
)
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import TrialOutcome, TrialRequest
from broadgauge.specs.machines.machine import MachineFacts, MachineGpu
from broadgauge.specs.networks.network import NodePath, PathKind
from broadgauge.specs.records.record import ErrorKind, PathFacts, Phase, Status

LOGS = Path(__file__).parent / "nccl_logs"
WORKER = Path(__file__).with_name("nccl_worker.py")
GIB = 2**30
PREFIX = "node:42:43 [0] NCCL INFO "
OLD_TABLE = """\
node:42:43 [0] NCCL INFO === System : maxBw 20.0 totalBw 40.0 ===
node:42:43 [0] NCCL INFO + PCI[12.0] - GPU/1000 (0)
node:42:43 [0] NCCL INFO + PCI[12.0] - GPU/C1000 (1)
node:42:43 [0] NCCL INFO GPU/1000 :GPU/1000 (0/5000.000000/LOC) GPU/C1000 (1/20.0/{kind})
"""


def log_of(name: str) -> str:
    """Two H200s, NCCL 2.28.9, 2026-11-21: what rank 0 said, cut to the lines that matter."""
    return (LOGS / f"{name}.log").read_text()


def case_on(path: PathKind | None, **changes: Any) -> Case:
    network = None if path is None else NodePath(name=path, path=path)
    fields = {"network": network, "device": "cuda", "backend": "nccl", "environment": {}}
    return make_case("local", **{**fields, **changes})


def read_connections(text: str) -> tuple[Connection, ...]:
    return connections_of(read_text(text))


def lines(*words: str) -> str:
    return "".join(f"{PREFIX}{each}\n" for each in words)


@pytest.mark.parametrize(
    ("name", "way", "num_channels", "words"),
    [
        ("nvlink", "nvlink", 24, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"),
        ("believed-pcie", "pcie", 4, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"),
        ("shm", "shm", 4, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"),
        ("sockets", "sockets", 2, "Channel 00/0 : 1[1] -> 0[0] [receive] via NET/Socket/0"),
    ],
)
def test_connections_of_real_logs(name: str, way: str, num_channels: int, words: str) -> None:
    found = read_connections(log_of(name))
    assert {each.way for each in found} == {way}
    assert channels_count(found) == num_channels
    assert found[0].line == words


@pytest.mark.parametrize("version", ["2.18.3", "2.21.5", "2.28.9", "2.30.7"])
@pytest.mark.parametrize(
    ("scenario", "way"), [("nvlink", "nvlink"), ("p2p-off", "shm"), ("sockets-inside", "sockets")]
)
def test_connections_of_each_release(version: str, scenario: str, way: str) -> None:
    """From 2.30 on ranks are told by their buses."""
    log = Path(__file__).parents[1] / f"doctor/machine/logs/{version}-{scenario}.log.gz"
    found = read_connections(gzip.decompress(log.read_bytes()).decode())
    assert {each.way for each in found} == {way}


@pytest.mark.parametrize(
    ("line", "way"),
    [
        # 2.18 to 2.30, src/transport/{p2p,shm,net,nvls}.cc
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", "p2p"),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", "p2p"),
        ("Channel 11/1 : 0[0] -> 1[1] via P2P/IPC/read", "p2p"),
        ("Channel 00/0 : 0[c1000] -> 1[1000] via P2P/CE/read", "p2p"),
        ("Channel 00/0 : 0[0] -> 3[3] via P2P/indirect/1[1]", "p2p"),
        ("Channel 03 : 0[0] -> 1[1] via SHM/CE/direct", "shm"),
        ("Channel 03 : 0[0] -> 1[1] via SHM/direct", "shm"),
        ("Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0(3)/Shared", "sockets"),
        ("Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA", "network"),
        ("NVLS comm 0x5581 headRank 0 nHeads 2 nvlsRanks 2 buffSize 1048576", "nvlink"),
    ],
)
def test_wordings_of_other_versions(line: str, way: str) -> None:
    assert [each.way for each in read_connections(lines(line))] == [way]


def test_lines_that_are_no_connections() -> None:
    text = lines(
        "Channel 00/24 : 0 1",
        "Ring 00 : 1 -> 0 -> 1",
        "NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
        "NCCL_P2P_LEVEL set by environment to NVL via P2P/x",
    )
    assert read_connections(text) == ()


def test_multicast_has_as_many_channels_as_nccl_says() -> None:
    text = lines(
        "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, "
        "32 p2p channels per peer",
        "NVLS comm 0x1 headRank 0 nHeads 8 buffSize 1",
    )
    assert channels_count(read_connections(text)) == 16


@pytest.mark.parametrize(
    ("kind", "way"), [("NVL", "nvlink"), ("NVB", "nvlink"), ("PIX", "pcie"), ("SYS", "pcie")]
)
def test_the_old_table_of_paths_tells_nvlink_from_pcie(kind: str, way: str) -> None:
    text = OLD_TABLE.format(kind=kind) + lines("Channel 00/0 : 0[1000] -> 1[c1000] via P2P/IPC")
    assert [each.way for each in read_connections(text)] == [way]


def test_a_second_communicator_has_a_table_of_its_own() -> None:
    connection = lines("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC")
    text = OLD_TABLE.format(kind="NVL") + connection + OLD_TABLE.format(kind="PHB") + connection
    assert [each.way for each in read_connections(text)] == ["nvlink", "pcie"]


MOVED = NvlinkUse(counted_bytes=15 * GIB, least_bytes=14 * GIB)
QUIET = NvlinkUse(counted_bytes=4096, least_bytes=14 * GIB)
STILL = NvlinkUse(counted_bytes=0, least_bytes=14 * GIB)
TOO_FEW = NvlinkUse(counted_bytes=4096, least_bytes=2**20)


@pytest.mark.parametrize(
    ("log", "nvlink", "used"),
    [
        ("nvlink", MOVED, "nvlink"),
        ("nvlink", None, "nvlink"),
        ("nvlink", TOO_FEW, "nvlink"),
        ("nvlink", STILL, "unknown"),
        ("nvlink", QUIET, "pcie"),
        ("believed-pcie", MOVED, "nvlink"),  # what was seen: CUDA took NVLink all the same
        ("believed-pcie", QUIET, "pcie"),
        ("believed-pcie", None, "unknown"),
        ("believed-pcie", STILL, "unknown"),
        ("shm", QUIET, "shm"),
        ("shm", None, "shm"),
        ("shm", MOVED, "nvlink"),
        ("sockets", QUIET, "sockets"),
        ("sockets", MOVED, "nvlink"),
        (None, MOVED, "nvlink"),
        (None, QUIET, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_the_path_used(log: str | None, nvlink: NvlinkUse | None, used: str) -> None:
    facts = path_facts(() if log is None else read_connections(log_of(log)), nvlink)
    assert facts.used == used
    assert len(facts.evidence) == (log is not None) + (nvlink is not None)
    assert (facts.channels_count is None) == (log is None)


def test_pcie_is_believed_without_counters_where_no_nvlink_joins_the_gpus() -> None:
    connections = read_connections(log_of("believed-pcie"))
    assert path_facts(connections, None, are_joined=False).used == "pcie"
    assert path_facts(connections, None, are_joined=True).used == "unknown"
    assert path_facts(connections, MOVED, are_joined=False).used == "nvlink"


def test_peers_over_an_unknown_way_are_decided_by_the_counters() -> None:
    connections = read_connections(lines("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"))
    assert path_facts(connections, None).used == "unknown"
    assert path_facts(connections, MOVED).used == "nvlink"
    assert path_facts(connections, QUIET).used == "pcie"


def test_of_several_paths_the_slowest_counts() -> None:
    """Four GPUs, two pairs with NVLink: between the pairs through the host."""
    text = log_of("nvlink") + lines("Channel 00 : 1[1] -> 2[2] via SHM/direct/direct")
    facts = path_facts(read_connections(text), MOVED)
    assert facts.used == "shm"
    assert [line.split(" via ")[1][:3] for line in facts.evidence[:2]] == ["SHM", "P2P"]


def test_a_mismatch_in_words() -> None:
    assert mismatch("shm", PathFacts(used="shm")) is None
    assert mismatch("shm", PathFacts(used="unknown")) is None
    words = "the case asks for path `nvlink`, and the bytes took `shm`"
    assert mismatch("nvlink", PathFacts(used="shm")) == words


def test_a_small_share_over_nvlink_is_not_the_path() -> None:
    assert NvlinkUse(counted_bytes=GIB // 25, least_bytes=GIB).is_used is False
    assert NvlinkUse(counted_bytes=GIB // 10, least_bytes=GIB).is_used is True
    assert NvlinkUse(counted_bytes=GIB // 25, least_bytes=None).is_used is True
    assert NvlinkUse(counted_bytes=4096, least_bytes=2**20).is_used is None
    assert NvlinkUse(counted_bytes=4096, least_bytes=GIB).is_used is False
    assert NvlinkUse(counted_bytes=0, least_bytes=GIB).is_used is None, "nothing at all counts"
    assert NvlinkUse(counted_bytes=GIB, least_bytes=None).is_used is True
    assert NvlinkUse(counted_bytes=0, least_bytes=None).is_used is None


def block(op: str, size: int, count: int, **changes: Any) -> dict[str, Any]:
    said = CollectiveBlock(
        trial_id="t",
        label=f"{op}/{size}",
        op=op,
        dtype="float32",
        size_bytes=size,
        seconds=(0.1,) * count,
        is_correct=True,
        **changes,
    )
    told: dict[str, Any] = encode(said)
    return told


def test_how_much_collectives_must_send() -> None:
    said = [block("all_reduce", 1000, 3), block("barrier", 0, 50), {"type": "done"}]
    assert least_sent_bytes([said] * 4, 4) == 3 * 1000 * 3
    assert least_sent_bytes([[{"type": "phase"}]] * 2, 2) is None


def test_a_message_between_two_ranks_counts_once() -> None:
    sender = block("send_recv", 1000, 5, from_rank=1, to_rank=2)
    silent = block("send_recv", 1000, 0, from_rank=1, to_rank=2)
    assert least_sent_bytes([[silent], [sender], [sender], [silent]], 4) == 5000


@pytest.mark.parametrize(
    "collectives", [(), (StepCollective(op="all_reduce", size_bytes=200, count=2),)]
)
def test_how_much_a_training_must_send(collectives: tuple[StepCollective, ...]) -> None:
    steps = {"trial_id": "t", "seconds": (0.1,) * 3, "losses": (1.0,) * 3}
    summary = TrainSummary(
        trial_id="t",
        parameters=100,
        tokens_per_step=1,
        sequences_per_step=1,
        gradient_bytes=400,
        collectives=collectives,
        flops_per_step=1.0,
        peak_memory_bytes=1,
        data="",
        parameter_checksum=None,
    )
    said = [
        encode(StepsBlock(label="on/0", mode=StepMode.TIMED, **steps)),
        encode(StepsBlock(label="off/0", mode=StepMode.COMMUNICATION_OFF, **steps)),
        encode(summary),
    ]
    assert least_sent_bytes([said] * 2, 2) == 3 * 400


def test_counters_of_all_gpus_or_none() -> None:
    assert nvlink_use((2000, 3000), 9) == NvlinkUse(counted_bytes=5000, least_bytes=9)
    assert nvlink_use((2000, None), 9) is None
    assert nvlink_use((), 9) is None


SAID = [[block("all_reduce", GIB, 10)]] * 2


@pytest.mark.parametrize(
    ("asked", "log", "counted", "used"),
    [
        ("nvlink", "nvlink", 10 * GIB, "nvlink"),
        ("shm", "shm", 0, "shm"),
        ("sockets", "sockets", 0, "sockets"),
        ("pcie", "believed-pcie", 0, "pcie"),
        (None, "shm", 0, "shm"),
    ],
)
def test_a_trial_on_the_path_meant(
    asked: PathKind | None, log: str, counted: int, used: str, tmp_path: Path
) -> None:
    (tmp_path / "b0.0.rank0.nccl.log").write_text(log_of(log))
    stem, counts = str(tmp_path / "b0.0"), (counted, counted)
    facts, error = check_path(case_on(asked), stem, counts, SAID, is_joined=False)
    assert error is None
    assert facts.used == used
    assert facts.evidence


@pytest.mark.parametrize(
    ("asked", "log", "counted", "used"),
    [
        ("pcie", "believed-pcie", 10 * GIB, "nvlink"),
        ("nvlink", "shm", 0, "shm"),
        ("shm", "nvlink", 10 * GIB, "nvlink"),
        ("sockets", "shm", 0, "shm"),
    ],
)
def test_a_trial_on_another_path_is_refused_with_evidence(
    asked: PathKind, log: str, counted: int, used: str, tmp_path: Path
) -> None:
    (tmp_path / "b0.0.rank1.nccl.77.log").write_text(log_of(log))
    facts, error = check_path(case_on(asked), str(tmp_path / "b0.0"), (counted, counted), SAID)
    assert error is not None
    assert (error.kind, error.phase) == (ErrorKind.REFUSED, Phase.MEASURE)
    assert error.message == f"the case asks for path `{asked}`, and the bytes took `{used}`"
    assert error.last_lines == facts.evidence != ()


def test_gloo_is_on_sockets_whatever_the_gpus_have(tmp_path: Path) -> None:
    case = case_on("sockets", backend="gloo")
    facts, error = check_path(case, str(tmp_path / "b0.0"), (None, None), [])
    assert (facts.used, error) == ("sockets", None)


SWITCH = "FFFFFFFF:FF:FF.0"


@pytest.mark.parametrize(
    ("nvml", "joined"),
    [
        (FakeNvml(FakeGpu(0, peers=(1,)), FakeGpu(1, peers=(0,))), True),
        (FakeNvml(FakeGpu(0), FakeGpu(1)), False),
        (in_a_row(2), True),
        (FakeNvml(*(FakeGpu(i, links=(SWITCH,) * 18, peers=None) for i in (0, 1))), True),
        (FakeNvml(*(FakeGpu(i, links=("down",) * 18) for i in (0, 1))), False),
        (FakeNvml(*(FakeGpu(i, links=None, peers=None) for i in (0, 1))), None),
        (FakeNvml(FakeGpu(0)), None),
    ],
)
def test_which_gpus_nvlink_joins(nvml: FakeNvml, joined: bool | None) -> None:
    assert are_joined(nvml, nvml.gpus) is joined


def test_gpus_with_a_third_between_them_are_not_joined() -> None:
    nvml = in_a_row(3)
    assert are_joined(nvml, (nvml.gpus[0], nvml.gpus[2])) is False
    assert are_joined(nvml, nvml.gpus) is True


def test_counters_are_in_kib_and_may_be_missing() -> None:
    nvml = FakeNvml(FakeGpu(0, nvlink_kib=(3, 5)), FakeGpu(1, nvlink_kib=None))
    assert sent_and_received_bytes(nvml, nvml.gpus[0]) == (2 * 3072, 2 * 5120)
    assert sent_and_received_bytes(nvml, nvml.gpus[1]) is None


def test_the_newest_nvlinks_have_counters_of_their_own() -> None:
    nvml = FakeNvml(FakeGpu(0, nvlink_kib=(0, 0), nvlink_bytes=(70, 90)))
    assert sent_and_received_bytes(nvml, nvml.gpus[0]) == (140, 180)
    nvml = FakeNvml(FakeGpu(0, nvlink_kib=None, nvlink_bytes=(70, 90)))
    assert sent_and_received_bytes(nvml, nvml.gpus[0]) == (140, 180)


def test_counters_that_were_reset_meanwhile_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(0, nvlink_kib=(100, 100), samples=[(1980, 0)])
    monkeypatch.setattr(gpu_watch, "open_nvml", lambda: FakeNvml(gpu))
    with gpu_watch.GpuWatch(("0",)) as watch:
        gpu.nvlink_kib = (5, 200)
    assert watch.nvlink_bytes() == (None,)


def test_a_watch_counts_what_crossed_nvlink_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = (
        FakeGpu(0, nvlink_kib=(100, 7), samples=[(1980, 0)]),
        FakeGpu(1, nvlink_kib=None, samples=[(1980, 0)]),
    )
    monkeypatch.setattr(gpu_watch, "open_nvml", lambda: FakeNvml(*gpus))
    with gpu_watch.GpuWatch(("0", "1")) as watch:
        gpus[0].nvlink_kib = (100 + 10, 7 + 2**19)
    assert watch.nvlink_bytes() == (GIB, None)


def test_clocks_of_an_idle_gpu_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the ranks compute the clock is low by itself."""
    idle, busy = (345, 0x1), (1970, 0x4)
    samples = [idle, idle, busy, busy, idle]
    gpu = FakeGpu(0, samples=samples)
    nvml = FakeNvml(gpu)
    taken = gpu_watch._Samples(nvml, gpu)
    for _ in range(5):
        taken.take()
    use = taken.use()
    assert (use.sm_clock_mhz, use.sm_clock_min_mhz, use.sm_clock_max_mhz) == (1970, 1970, 1980)
    assert use.throttled_ratio == 0.4
    assert use.throttle_reasons == ("software power cap",)


KINDS = ["local", pytest.param("emulated", marks=pytest.mark.namespaces)]


def run_with_log(kind: str, folder: Path, case: Case, log: str) -> TrialOutcome:
    """One trial of ranks on one node that say they used what the log says."""
    programs = Programs(worker=(sys.executable, str(WORKER), log))
    platform = (EmulatedPlatform if kind == "emulated" else LocalPlatform)(
        make_folders(folder), programs=programs
    )
    launch = platform.start(make_request(case), quiet)
    try:
        return launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=1), quiet)
    finally:
        launch.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_trial_tells_its_path_and_one_on_another_fails(kind: str, tmp_path: Path) -> None:
    """Through the supervisor, as for real; without GPUs, so the log alone decides."""
    case = case_on("shm", device="cpu")
    outcome = run_with_log(kind, tmp_path / "good", case, "shm")
    assert (outcome.status, outcome.error) == (Status.OK, None)
    assert outcome.path == PathFacts(
        used="shm",
        channels_count=4,
        evidence=("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",),
    )
    outcome = run_with_log(kind, tmp_path / "bad", case, "nvlink")
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.REFUSED
    assert outcome.path is not None
    assert outcome.path.used == "nvlink"
    assert outcome.error.last_lines == (
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM (NCCL takes it for NVLink)",
    )


def test_pcie_is_refused_where_nvlink_joins_the_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any rank starts, and with what would have to be changed."""
    for module in (path_check, gpu_choice):
        monkeypatch.setattr(module, "open_nvml", lambda: in_a_row(2))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    request = make_request(case_on("pcie"))
    with pytest.raises(LaunchError) as refused:
        LocalPlatform(make_folders(tmp_path)).start(request, quiet)
    assert refused.value.error is not None
    assert refused.value.error.kind is ErrorKind.REFUSED
    assert "NVreg_NvLinkDisable=1" in refused.value.error.message
    assert refused.value.hint is not None
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("nvml", [FakeNvml(FakeGpu(0), FakeGpu(1)), None])
def test_pcie_is_tried_where_nothing_speaks_against_it(
    nvml: FakeNvml | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_check, "open_nvml", lambda: nvml)
    refuse_impossible_path(case_on("pcie"), ("0", "1"))


@pytest.mark.parametrize("path", ["nvlink", "shm", "sockets", None])
def test_other_paths_are_not_refused_over_nvlink(
    path: PathKind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_check, "open_nvml", lambda: in_a_row(2))
    refuse_impossible_path(case_on(path), ("0", "1"))


def test_each_path_decides_each_transport_that_comes_before_it() -> None:
    """A user's own NCCL_P2P_DISABLE must not decide; NVLS (multicast) is never switched on."""
    for path, variables in NCCL_VARIABLES.items():
        assert variables["NCCL_P2P_DISABLE"] == ("0" if path in ("nvlink", "pcie") else "1")
        assert variables.get("NCCL_NVLS_ENABLE") == (None if path == "nvlink" else "0")
    assert NCCL_VARIABLES["shm"]["NCCL_SHM_DISABLE"] == "0"
    assert NCCL_VARIABLES["sockets"]["NCCL_SHM_DISABLE"] == "1"


@pytest.mark.parametrize(
    ("num_gpus", "has_nvlink", "expected"),
    [
        (0, None, ("sockets",)),
        (1, None, ("sockets",)),
        (2, True, ("nvlink", "shm", "sockets")),
        (2, False, ("pcie", "shm", "sockets")),
        (8, None, ("shm", "sockets")),
    ],
)
def test_paths_that_a_machine_could_have(
    num_gpus: int, has_nvlink: bool | None, expected: tuple[str, ...]
) -> None:
    machine = MachineFacts(
        hostname="h",
        cores=(0,),
        memory_bytes=1,
        gpus=(MachineGpu(name="NVIDIA H200", memory_bytes=1),) * num_gpus,
        nics=(),
        kernel="6",
        python="3.12",
        torch=None,
        can_emulate=False,
        can_delay=False,
        refusal="no",
        fix=None,
        has_nvlink=has_nvlink,
    )
    assert paths_between_gpus(machine) == expected
