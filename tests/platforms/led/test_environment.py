"""Is of each launch recorded what its ranks were given, also where only the agent knew it?"""

from pathlib import Path

import pytest
from tests.platforms.hosts.test_environment import FIRST
from tests.platforms.launches import make_case, make_folders
from tests.platforms.led.test_orders import FOUND, IN_PODS, ON_HOSTS, a_job, launches, variables_of

from broadgauge.agent.in_pod import with_network
from broadgauge.messages.leader import INTERFACES_WORD
from broadgauge.platforms.led.environment import machines_environment
from broadgauge.platforms.led.orders import Seats

HELLO = {"torch": "2.11.0"}


def recorded(
    folder: Path, seats: Seats, found: dict[str, str] | None, **changes: object
) -> dict[str, str]:
    """A launch's variables, as its record has them."""
    case = make_case("emulated", ranks_per_node=2, **changes)
    return dict(
        machines_environment(
            "kubernetes",
            case,
            (FIRST, FIRST),
            seats,
            HELLO,
            folders=make_folders(folder),
            found=found,
        ).variables
    )


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("own", [{}, {"NCCL_IB_HCA": "=mlx5_9:1"}])
def test_what_the_agent_found_is_recorded_as_its_ranks_were_given_it(
    tmp_path: Path, backend: str, own: dict[str, str]
) -> None:
    """What the experiment sets is stronger than what is found, there as here."""
    changes = {"backend": backend, "environment": own}
    order = with_network(launches(a_job(IN_PODS, **changes))[0], FOUND)
    given = variables_of(order, 0)
    found = {name: value for name, value in FOUND.variables.items() if name not in own}
    found |= {"GLOO_SOCKET_IFNAME": "net1,net2"} if backend == "gloo" else {}
    told = recorded(tmp_path, IN_PODS, found, **changes)
    named = [name for name in told if name.endswith(("_IFNAME", "_HCA"))]
    assert len(named) >= 2
    assert {name: told[name] for name in named} == {name: given[name] for name in named}
    assert not [value for value in told.values() if INTERFACES_WORD in value]


def test_where_the_agent_told_nothing_no_word_stands_for_it(tmp_path: Path) -> None:
    told = recorded(tmp_path, IN_PODS, None)
    assert "GLOO_SOCKET_IFNAME" not in told
    assert not [value for value in told.values() if INTERFACES_WORD in value]


def test_what_is_known_before_is_recorded_as_it_is(tmp_path: Path) -> None:
    assert recorded(tmp_path, ON_HOSTS, None)["GLOO_SOCKET_IFNAME"] == "eth0,ib0"
