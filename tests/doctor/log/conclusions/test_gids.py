"""Is a RoCE connection that times out told with the address that was chosen, and a better one?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding

FAILED = (
    "a1:10:12 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to {index}.\n"
    "a1:10:12 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error {reason}\n"
)
SHOW_GIDS = (
    "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n"
    "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n"
    "mlx5_0\t1\t0\tfe80:0000:0000:0000:0ac0:ebff:feda:1c0b\t\t\tv1\teth0\n"
    "mlx5_0\t1\t1\tfe80:0000:0000:0000:0ac0:ebff:feda:1c0b\t\t\tv2\teth0\n"
    "mlx5_0\t1\t2\t0000:0000:0000:0000:0000:ffff:0a14:0906\t10.20.9.6  \tv1\teth0\n"
    "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a14:0906\t10.20.9.6  \tv2\teth0\n"
    "n_gids_found=4\n"
)
DEVINFO = (
    "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
    "\t\t\tGID[  1]:\t\tfe80::ac0:ebff:feda:1c0b, RoCE v2\n"
    "\t\t\tGID[  3]:\t\t::ffff:10.20.9.6, RoCE v2\n"
)


def told(*parts: str, index: int = 1, reason: str = "Connection timed out") -> dict[str, Finding]:
    text = FAILED.format(index=index, reason=reason) + "".join(parts)
    return {each.rule: each for each in log_findings(read_text(text))}


def test_the_table_of_show_gids_names_the_adapter_and_the_better_index() -> None:
    found = told(SHOW_GIDS)
    finding = found["gid-link-local"]
    assert "NCCL_IB_GID_INDEX=1 is a link-local address of mlx5_0" in finding.symptom
    assert finding.fix is not None
    assert finding.fix.startswith("NCCL_IB_GID_INDEX=3, the RoCE v2 address 10.20.9.6")
    assert "ib-modify-qp-older" not in found


def test_the_list_of_ibv_devinfo_says_it_too() -> None:
    found = told(DEVINFO)
    assert "link-local" in found["gid-link-local"].symptom
    assert "NCCL_IB_GID_INDEX=3" in (found["gid-link-local"].fix or "")


def test_an_index_of_a_routed_address_is_not_blamed() -> None:
    found = told(SHOW_GIDS, index=3)
    assert "gid-link-local" not in found
    assert "VLAN, subnet or a filter" in (found["ib-modify-qp-older"].cause or "")


def test_another_reason_than_a_time_out_is_not_the_addresses() -> None:
    assert "gid-link-local" not in told(SHOW_GIDS, reason="No such device")


def test_without_a_better_address_none_is_named() -> None:
    only = "".join(SHOW_GIDS.splitlines(keepends=True)[:4])
    assert "the index of a RoCE v2 address" in (told(only)["gid-link-local"].fix or "")


USES = "a1:10:12 [0] NCCL INFO NET/IB : Using [0]{device}:1/RoCE [RO]; OOB eth0:10.20.9.6<0>\n"


def test_only_an_adapter_that_nccl_uses_is_blamed() -> None:
    assert "gid-link-local" not in told(USES.format(device="mlx5_9"), SHOW_GIDS)
    assert "gid-link-local" in told(USES.format(device="mlx5_0"), SHOW_GIDS)


def test_the_adapter_of_a_list_of_ibv_devinfo_is_named() -> None:
    found = told(USES.format(device="mlx5_0"), DEVINFO)
    assert "link-local address of mlx5_0" in found["gid-link-local"].symptom
    assert "gid-link-local" not in told(USES.format(device="mlx5_9"), DEVINFO)
