"""Do consequences fold into their causes, by time, and does no cause contradict the log?"""

import pytest

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding, Severity

HEAD = "node1:311:405 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : "
LOST = (
    "node1:311:399 [0] transport/net_ib.cc:1861 NCCL WARN NET/IB: Got completion from peer "
    "192.0.2.7<41812> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid {here} "
    "remoteGids{there} hca {adapter}"
)
REMOTE = (
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
    "prematurely."
)


def found(*lines: str) -> dict[str, Finding]:
    return {each.rule: each for each in log_findings(read_text("\n".join(lines)))}


def event(clock: str, words: str, port: str = "mlx5_3:1") -> str:
    return f"[2025-09-17 {clock}] {HEAD}{port} Got async error event: {words}"


def lost(clock: str, adapter: str = "mlx5_3") -> str:
    words = LOST.format(here="::ffff:192.0.2.9", there="::ffff:192.0.2.7", adapter=adapter)
    return f"[2025-09-17 {clock}] {words}"


FLAPS = (
    event("15:16:23", "port error"),
    event("15:16:31", "port active"),
    event("15:23:34", "port error"),
    event("15:23:42", "port active"),
)


def test_a_port_that_flaps_is_the_cause_of_a_transfer_that_failed_on_it() -> None:
    told = found(*FLAPS, lost("15:23:51"), REMOTE)
    assert set(told) == {"port-went-down"}
    finding = told["port-went-down"]
    assert finding.severity is Severity.ERROR
    assert "port mlx5_3:1 went down 2 times and came up again (15:16:23 to 15:23:42)" in (
        finding.symptom
    )


def test_each_process_tells_of_each_event_and_it_counts_once() -> None:
    others = [line.replace("node1:311", f"node1:{pid}") for pid in (312, 313) for line in FLAPS]
    told = found(*FLAPS, *others)["port-went-down"]
    assert "went down 2 times" in told.symptom


@pytest.mark.parametrize("line", [lost("15:16:20"), lost("15:23:51", "mlx5_0")])
def test_a_transfer_that_failed_before_or_on_another_adapter_is_told_by_itself(line: str) -> None:
    told = found(*FLAPS, line)
    assert told["port-went-down"].severity is Severity.WARNING
    assert told["ib-completion-named"].severity is Severity.ERROR


def test_a_port_that_went_down_once_and_took_the_job_along() -> None:
    told = found(event("15:16:23", "port error"), REMOTE)
    assert set(told) == {"port-went-down"}
    assert told["port-went-down"].severity is Severity.ERROR
    assert "went down (15:16:23)" in told["port-went-down"].symptom


def test_other_events_are_told_beside_it() -> None:
    told = found(event("15:16:23", "port error"), event("15:16:24", "client reregistration"))
    assert set(told) == {"port-went-down", "ib-async-event"}


def test_ends_of_two_kinds_of_addresses() -> None:
    line = LOST.format(here="fe80::9", there="::ffff:192.0.2.7", adapter="mlx5_3")
    told = found(line)
    assert set(told) == {"gids-of-two-kinds"}
    assert "fe80::9 and ::ffff:192.0.2.7" in told["gids-of-two-kinds"].symptom


def test_ends_of_one_kind_say_nothing_of_it() -> None:
    assert set(found(lost("15:00:00"))) == {"ib-completion-named"}


AER = "[1000.1] pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0"
XID = "[1041.2] NVRM: Xid (PCI:0000:03:00): 79, pid=41, name=python3, GPU has fallen off the bus."


def test_corrected_errors_are_told_with_the_gpu_that_was_lost() -> None:
    told = found(*[AER] * 7, XID)
    assert set(told) == {"xid-79"}
    assert "PCIe port 0000:00:03.0 7 times" in told["xid-79"].symptom


def test_few_corrected_errors_are_no_sign_and_many_are() -> None:
    assert found(*[AER] * 19) == {}
    assert found(*[AER] * 20)["pcie-corrected-often"].severity is Severity.WARNING


FULL = (
    "node0:28:52 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'",
    "node0:28:52 [3] proxy.cc:1519 NCCL WARN [Proxy Service 3] Failed to execute operation Setup "
    "from rank 3, retcode 1",
    "node0:25:48 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer "
    "node0<51159>",
    "node0:25:48 [0] proxy.cc:1143 NCCL WARN Socket recv failed while polling for opId=0x55a5",
)


def test_memory_that_was_full_is_the_cause_of_closed_connections() -> None:
    told = found(*FULL)
    assert set(told) == {"cuda-memory-full"}
    assert "host node0 process 28 (GPU 3)" in told["cuda-memory-full"].symptom
    assert "peer-closed" in found(*FULL[2:])


def test_a_variable_that_a_finding_names_is_quoted_with_its_value() -> None:
    told = found(
        "node0:28:52 [3] NCCL INFO NCCL_SOCKET_IFNAME set by environment to net9",
        "node0:28:52 [3] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
    )
    assert "NCCL_SOCKET_IFNAME=net9" in told["socket-no-interface"].evidence


def channel(via: str) -> tuple[str, ...]:
    return (
        "node0:28:52 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 "
        "busId 7000 commId 0x9a - Init START",
        f"node0:28:52 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0{via}",
    )


STATUS_4 = (
    "node0:28:52 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer "
    "192.0.2.3<33397> with error 4, opcode 32611, len 32611, vendor err 81 (Send)"
)


def test_a_rule_asks_whether_the_transfer_was_by_gpudirect_rdma() -> None:
    assert "ACS" in str(found(*channel("/GDRDMA"), STATUS_4)["ib-completion-named"].cause)
    assert "ACS" not in str(found(*channel(""), STATUS_4)["ib-completion-named"].cause)


def timeout(rank: int, op: str, elements: int, sequence: int = 5, group: str = "0") -> str:
    return (
        f"[rank{rank}]:[E331 10:11:02.4 ProcessGroupNCCL.cpp:685] [PG ID {group} Rank {rank}] "
        f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={sequence}, OpType={op}, "
        f"NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) ran for 600031 "
        "milliseconds before timing out."
    )


def test_ranks_in_different_collectives_under_one_number() -> None:
    told = found(timeout(0, "ALLREDUCE", 1000), timeout(1, "BROADCAST", 4))
    assert set(told) == {"ranks-in-different-collectives"}
    symptom = told["ranks-in-different-collectives"].symptom
    assert "rank 0 in ALLREDUCE of 1,000 elements; rank 1 in BROADCAST of 4 elements" in symptom


@pytest.mark.parametrize(
    ("first", "second"),
    [(("SEND", 4), ("RECV", 4)), (("ALLTOALL_BASE", 4), ("ALLTOALL_BASE", 6))],
)
def test_what_ranks_may_do_otherwise_is_no_mismatch(
    first: tuple[str, int], second: tuple[str, int]
) -> None:
    told = found(timeout(0, *first), timeout(1, *second))
    assert "ranks-in-different-collectives" not in told


def test_numbers_of_different_groups_are_not_compared() -> None:
    told = found(timeout(0, "ALLREDUCE", 1000, group="1"), timeout(1, "BROADCAST", 4, group="2"))
    assert set(told) == {"torch-watchdog-timeout"}


def test_a_barrier_while_data_is_prepared() -> None:
    bar = "Map (num_proc=8):  35%|###  | 3500/10000 [29:01<53:36,  2.01 examples/s]"
    told = found(bar, timeout(1, "ALLREDUCE", 1))
    assert set(told) == {"waits-for-preparing"}
    assert "rank 1 waited 10 min in a barrier" in told["waits-for-preparing"].symptom
    assert set(found(bar, timeout(1, "ALLREDUCE", 1000))) == {"torch-watchdog-timeout"}
    alone = found(timeout(1, "ALLREDUCE", 1))["torch-watchdog-timeout"]
    assert "in a barrier, or for one number of all ranks" in alone.symptom


BEGAN = "node0:28:52 [0] NCCL INFO Using network Socket\n" + channel("")[0]


def test_that_nobody_completed_is_told_only_where_nothing_says_why() -> None:
    alone = BEGAN.replace("nranks 2", "nranks 1")
    assert "init-not-completed" in found(alone)
    told = found(alone, FULL[0])
    assert "cuda-memory-full" in told
    assert "init-not-completed" not in told


def test_ranks_of_which_nothing_was_heard_are_told_beside_an_error() -> None:
    assert {"init-not-completed", "cuda-memory-full"} <= set(found(BEGAN, FULL[0]))


def test_ranks_of_which_nothing_was_heard_are_not_told_beside_a_setting_of_the_host() -> None:
    refused = (
        "node0:28:52 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_create_cq failed with error "
        "Cannot allocate memory errno 12"
    )
    told = found(BEGAN, refused)
    assert "memlock" in told
    assert "init-not-completed" not in told
