"""Are the ports of planted adapters read, in bytes, and those that say nothing left out?"""

from pathlib import Path

import pytest

from broadgauge.agent.counters.infiniband import port_counters
from broadgauge.agent.supervisor.launch_nodes import PlainNodes
from broadgauge.messages.counters import NicCounters
from broadgauge.messages.launch_order import LaunchOrder, Mode, NodePlan
from broadgauge.messages.vocabulary import CounterKind
from broadgauge.platforms.launch_plan import phase_limits
from broadgauge.specs.time_limits import TimeLimits

SENT, RECEIVED = 1_000_003, 2**40 + 15


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    """Two adapters as mlx5 shows them, one with ten ports and one port that can't be read."""
    plant(tmp_path, "mlx5_0", "1", xmit=SENT, rcv=RECEIVED, discards="7")
    plant(tmp_path, "mlx5_1", "10", xmit=5, rcv=6)
    plant(tmp_path, "mlx5_1", "2", xmit=3, rcv=4)
    (tmp_path / "mlx5_2/ports/1/counters").mkdir(parents=True)
    return tmp_path


def plant(
    folder: Path, adapter: str, port: str, *, xmit: int, rcv: int, discards: str = ""
) -> None:
    counters = folder / adapter / "ports" / port / "counters"
    counters.mkdir(parents=True)
    (counters / "port_xmit_data").write_text(f"{xmit}\n")
    (counters / "port_rcv_data").write_text(f"{rcv}\n")
    if discards:
        (counters / "port_xmit_discards").write_text(f"{discards}\n")


def test_counts_are_of_four_bytes(adapters: Path) -> None:
    first, *_ = port_counters(adapters)
    assert first == NicCounters(
        name="mlx5_0:1",
        tx_bytes=4 * SENT,
        rx_bytes=4 * RECEIVED,
        drops_count=7,
        kind=CounterKind.HCA_PORT,
    )


def test_ports_are_in_order_and_the_silent_one_is_left_out(adapters: Path) -> None:
    ports = port_counters(adapters)
    assert [port.name for port in ports] == ["mlx5_0:1", "mlx5_1:2", "mlx5_1:10"]
    assert [port.drops_count for port in ports] == [7, None, None]


def test_a_machine_without_adapters_has_no_ports(tmp_path: Path) -> None:
    assert port_counters(tmp_path / "infiniband") == ()


def test_the_machine_as_one_node_shows_them(adapters: Path) -> None:
    order = LaunchOrder(
        launch_id="b0.l0",
        mode=Mode.PLAIN,
        num_nodes=4,
        nodes=(NodePlan(node=3, cores=(0,)),),
        ranks=(),
        environment={},
        link=None,
        limits=phase_limits(TimeLimits()),
    )
    [reading] = PlainNodes(order, adapters=adapters).read_counters([])
    assert reading.node == 3
    node = reading.counters
    assert [nic.name for nic in node.nics] == ["mlx5_0:1", "mlx5_1:2", "mlx5_1:10"]
    assert (node.tx_bytes, node.rx_bytes, node.drops_count) == (None, None, None)
