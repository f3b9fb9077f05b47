"""Is what the kernel, a plugin or an adapter says told as the cause, and nothing beside it?"""

import pytest

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding, Severity

LOST = (
    "{host}:71:190 [0] transport/net_ib.cc:1720 NCCL WARN NET/IB: Got completion from peer "
    "192.0.2.7<40123> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid :: "
    "remoteGids :: hca {adapter}"
)
IOMMU = (
    "n0 kernel: nvidia 0000:07:00.0: AMD-Vi: Event logged "
    "[IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]"
)


def found(*lines: str) -> dict[str, Finding]:
    return {each.rule: each for each in log_findings(read_text("\n".join(lines)))}


def process(rank: int, *, adapters: str = "", way: str = "", version: str = "2.26.2") -> list[str]:
    head = f"n{rank}:{70 + rank}:{80 + rank} [0] NCCL INFO "
    peer = 1 - rank
    lines = [
        f"NCCL version {version}+cuda12.8",
        f"NET/IB : Using {adapters} [RO]; OOB eth0:192.0.2.{rank + 1}<0>" if adapters else "",
        "Using network IB" if adapters else "Using network Socket",
        f"ncclCommInitRankConfig comm 0x55{rank} rank {rank} nranks 2 cudaDev 0 nvmlDev 0 "
        "busId 1b000 commId 0x1234abcd - Init START",
        f"Channel 00/0 : {rank}[0] -> {peer}[0] {way}" if way else "",
    ]
    return [head + line for line in lines if line]


def stalled(rank: int) -> str:
    return (
        f"[rank{rank}]:[E1120 22:41:07.1 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1000000, "
        "NumelOut=1000000, Timeout(ms)=600000) ran for 600021 milliseconds before timing out."
    )


def both(**given: str) -> list[str]:
    return [*process(0, **given), *process(1, **given)]


def test_an_ethernet_port_beside_infiniband() -> None:
    listed = both(adapters="[0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_bond_0:1/RoCE")
    told = found(*listed, LOST.format(host="n0", adapter="mlx5_bond_0"))
    assert "ib-completion-named" not in told
    assert told["lost-beside-infiniband"].severity is Severity.ERROR
    assert "NCCL_IB_HCA=^=mlx5_bond_0" in str(told["lost-beside-infiniband"].fix)


@pytest.mark.parametrize(
    ("adapters", "failed"),
    [
        ("[0]mlx5_0:1/IB [1]mlx5_bond_0:1/RoCE", "mlx5_0"),
        ("[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/IB", "mlx5_0"),
        ("[0]mlx5_0:1/RoCE", "mlx5_0"),
    ],
)
def test_the_network_of_the_job_is_no_port_beside_it(adapters: str, failed: str) -> None:
    told = found(*both(adapters=adapters), LOST.format(host="n0", adapter=failed))
    assert "ib-completion-named" in told
    assert "lost-beside-infiniband" not in told


def test_a_name_of_two_kinds_on_two_hosts_is_left_out_nowhere() -> None:
    ours = process(0, adapters="[0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/RoCE")
    others = process(1, adapters="[0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [2]mlx5_2:1/IB")
    told = found(*ours, *others, LOST.format(host="n0", adapter="mlx5_0"))
    assert "lost-beside-infiniband" not in told


def test_infiniband_alone_is_not_told_what_roce_needs() -> None:
    lost = LOST.format(host="n0", adapter="mlx5_0")
    infiniband = found(*both(adapters="[0]mlx5_0:1/IB"), lost)["ib-completion-named"]
    roce = found(*both(adapters="[0]mlx5_0:1/RoCE"), lost)["ib-completion-named"]
    assert "ibqueryerrors" in str(infiniband.fix)
    assert "flow control" not in str(infiniband.fix)
    assert "flow control" in str(roce.fix)


def test_efa_without_its_plugin_refuses_what_nccl_asks_verbs_for() -> None:
    refused = (
        "n0:70:80 [0] misc/ibvwrap.cc:290 NCCL WARN Call to ibv_create_qp failed with error "
        "Operation not supported errno 95"
    )
    told = found(*both(adapters="[0]rdmap79s0:1/RoCE"), refused)
    assert told["network-other-hca"].severity is Severity.ERROR
    assert "ib-call-failed" not in told


def test_a_stall_over_sockets_is_not_told_of_gids() -> None:
    lines = both(way="[send] via NET/Socket/0")
    told = found(*lines, stalled(0), stalled(1))["collective-stalled"]
    assert "over TCP sockets" in told.symptom
    assert "ping -M do" in str(told.fix)
    assert "GID" not in str(told.cause)


def test_an_iommu_that_refuses_explains_a_stall() -> None:
    told = found(*both(way="via P2P/CUMEM"), IOMMU, stalled(0), stalled(1))
    assert "iommu-fault" in told
    assert "collective-stalled" not in told


def test_different_versions_explain_a_message_of_another_size() -> None:
    cut = (
        "n0:70:80 [0] bootstrap.cc:122 NCCL WARN Message truncated : received 1024 bytes "
        "instead of 256"
    )
    one_version = found(*both(), cut)
    assert "message-truncated" in one_version
    told = found(*process(0, version="2.21.5"), *process(1, version="2.18.3"), cut)
    assert "nccl-versions-differ" in told
    assert "message-truncated" not in told
