"""Is each host of a run described, equal ones once?"""

from dataclasses import replace

from tests.platforms.launches import make_case

from broadgauge.agent.facts import HostFacts, InterfaceFacts
from broadgauge.platforms.led.environment import nodes_of

FIRST = HostFacts(
    machine_id="1",
    hostname="gpu1",
    python="3.11.7",
    torch="2.11.0",
    nccl=None,
    kernel="6.8.0",
    distribution=None,
    cpu=None,
    cores=8,
    memory_bytes=2**34,
    gpus=(),
    driver=None,
    interfaces=(
        InterfaceFacts(
            name="ib0", address=None, netmask=None, mtu_bytes=4092, speed_gbps=100.0, driver=None
        ),
    ),
    reached_at=None,
)


def test_hosts_that_are_alike_are_one_entry() -> None:
    second = replace(FIRST, machine_id="2", hostname="gpu2")
    other = replace(FIRST, machine_id="3", hostname="gpu3", torch="2.10.0")
    case = make_case("emulated", nodes=2)
    [both] = nodes_of(case, [FIRST, second, other])  # the case is on the first two
    assert (both.nodes, both.hostnames) == ((0, 1), ("gpu1", "gpu2"))
    assert both.nics == ("ib0 100 Gbit/s",)
    case = make_case("emulated", nodes=3)
    assert [each.torch for each in nodes_of(case, [FIRST, second, other])] == ["2.11.0", "2.10.0"]
