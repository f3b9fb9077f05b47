"""Are ports that `ibv_devinfo` lists told: no link, no subnet manager, small packets?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding, Severity


def adapter(
    name: str,
    *,
    state: str = "PORT_ACTIVE (4)",
    physical: str = "LINK_UP (5)",
    link: str = "Ethernet",
    mtu: int = 4096,
) -> str:
    facts = {
        "state": state,
        "max_mtu": "4096 (5)",
        "active_mtu": f"{mtu} (3)",
        "sm_lid": "0",
        "link_layer": link,
        "phys_state": physical,
    }
    lines = "".join(f"\t\t\t{key}:\t\t\t{value}\n" for key, value in facts.items())
    return (
        f"hca_id:\t{name}\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n{lines}\n"
    )


def found(*adapters: str) -> dict[str, Finding]:
    return {each.rule: each for each in log_findings(read_text("".join(adapters)))}


def test_healthy_ports_say_nothing() -> None:
    assert found(adapter("mlx5_0"), adapter("mlx5_1")) == {}


def test_a_port_without_a_link() -> None:
    down = adapter("mlx5_3", state="PORT_DOWN (1)", physical="POLLING (2)")
    told = found(adapter("mlx5_0"), down)["port-without-link"]
    assert (told.severity, told.symptom) == (
        Severity.ERROR,
        "no link on mlx5_3:1: Down/Polling",
    )


def test_a_port_that_is_switched_off_is_meant_to_be() -> None:
    assert found(adapter("mlx5_3", state="PORT_DOWN (1)", physical="DISABLED (3)")) == {}


def test_a_port_that_no_subnet_manager_has_set_up() -> None:
    told = found(adapter("mlx5_0", state="PORT_INIT (2)", link="InfiniBand"))
    assert "no subnet manager answers mlx5_0:1" in told["port-without-link"].symptom


def test_small_packets_of_roce_are_a_note_and_different_ones_a_warning() -> None:
    same = found(adapter("mlx5_0", mtu=1024), adapter("mlx5_1", mtu=1024))["roce-packets-small"]
    assert same.severity is Severity.INFO
    assert "packets of 1,024 bytes over mlx5_0:1 and mlx5_1:1" in same.symptom
    differ = found(adapter("mlx5_0", mtu=1024), adapter("mlx5_1"))["roce-packets-small"]
    assert differ.severity is Severity.WARNING
    assert "1,024 and 4,096" in differ.symptom


def test_a_list_below_a_table_hides_nothing_of_the_table() -> None:
    """Both stand in one block: the later list must not be looked for first."""
    table = (
        "#                                                  out-of-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
        "   134217728      33554432     float     sum      -1   8230.0   16.31   30.58      0\n"
    )
    reading = read_text(table + adapter("mlx5_0"))
    assert [each.busbw_gbyte_per_s for each in reading.measured] == [30.58]
    assert [each.name for each in reading.ports] == ["mlx5_0:1"]
