"""What is an agent told that has to look for its launch's network by itself?"""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.platforms.launches import make_case, make_request

from broadgauge.agent.in_pod import with_network
from broadgauge.agent.pod.resolve import ResolvedNetwork
from broadgauge.messages.asked_network import AskedAttachment, AskedNetwork
from broadgauge.messages.launch_order import LaunchOrder, NodePlan
from broadgauge.messages.leader import INTERFACES_WORD, LIFE_WORD, MASTER_WORD, Job, TakeJobs
from broadgauge.platforms.kubernetes.orders import order_bytes
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.led.orders import Seat, Seats, job_of
from broadgauge.platforms.supervised import trial_order
from broadgauge.specs.launching import TrialRequest

NETWORK = AskedNetwork(
    name="rails",
    num_nics=2,
    attachments=tuple(
        AskedAttachment(definition=f"default/rail-{n}", interface=f"net{n}") for n in (1, 2)
    ),
)
IN_PODS = Seats(
    seats=(Seat(num_cores=4, interfaces=(INTERFACES_WORD,)),) * 2,
    master_address=MASTER_WORD,
    network=NETWORK,
)
ON_HOSTS = Seats(
    seats=tuple(Seat(num_cores=4, interfaces=(name, "ib0")) for name in ("eth0", "eno1")),
    master_address="10.0.0.1",
)
FOUND = ResolvedNetwork(
    name="rails",
    interfaces=("net1", "net2"),
    variables={"NCCL_SOCKET_IFNAME": "=net1,net2", "NCCL_IB_HCA": "=mlx5_0:1,mlx5_3:1"},
)


def a_job(seats: Seats, **changes: object) -> Job:
    """One trial on two nodes with two ranks each."""
    case = make_case("emulated", ranks_per_node=2, **changes)
    trials = (TrialRequest(trial_id="b0.l0.t0", case=case, seed=1),)
    request = make_request(case, launch_id="b0.l0r2", trials=trials)
    return job_of(request, lambda _: seats, trial_order, Programs())


def launches(job: Job) -> list[LaunchOrder]:
    return [each.order for each in job.orders]


def variables_of(order: LaunchOrder, place: int) -> dict[str, str]:
    return order.environment | order.ranks[place].environment


def test_an_agent_that_must_look_is_told_the_network_and_no_interface() -> None:
    assert [order.nodes for order in launches(a_job(IN_PODS))] == [
        (NodePlan(node=node, cores=(), interfaces=(), network=NETWORK),) for node in (0, 1)
    ]


def test_an_agent_on_a_known_machine_is_told_its_interfaces() -> None:
    assert [order.nodes for order in launches(a_job(ON_HOSTS))] == [
        (NodePlan(node=node, cores=(), interfaces=names),)
        for node, names in enumerate((("eth0", "ib0"), ("eno1", "ib0")))
    ]


@pytest.mark.parametrize(
    ("backend", "name", "before"), [("gloo", "GLOO", ""), ("nccl", "NCCL", "=")]
)
def test_what_the_agent_finds_stands_in_every_ranks_variables(
    backend: str, name: str, before: str
) -> None:
    for order in launches(a_job(IN_PODS, backend=backend)):
        filled = with_network(order, FOUND)
        for place in (0, 1):
            given = variables_of(filled, place)
            assert given[f"{name}_SOCKET_IFNAME"] == f"{before}net1,net2"
            assert not [value for value in given.values() if INTERFACES_WORD in value]
        assert [node.interfaces for node in filled.nodes] == [("net1", "net2")]


def test_ranks_of_a_job_differ_in_their_places_alone() -> None:
    for order in launches(a_job(IN_PODS)):
        first = 2 * order.nodes[0].node
        own = [rank.environment for rank in order.ranks]
        assert own == [{"LOCAL_RANK": str(place), "RANK": str(first + place)} for place in (0, 1)]
        assert order.environment["MASTER_ADDR"] == MASTER_WORD
        assert order.launch_id == LIFE_WORD


def test_a_later_life_of_a_launch_is_known_by_its_number() -> None:
    job = a_job(IN_PODS)
    assert (job.job_id, job.first_life, job.num_ranks) == ("b0.l0", 2, 4)


PRINT_BYTES = """
import sys
from tests.platforms.led.test_orders import told_bytes
sys.stdout.write(told_bytes().hex())
"""


def told_bytes() -> bytes:
    environment = {f"OWN_{n}": f"{n}" for n in range(20)}
    jobs = tuple(
        a_job(seats, backend=backend, environment=environment)
        for seats in (IN_PODS, ON_HOSTS)
        for backend in ("gloo", "nccl")
    )
    return order_bytes(TakeJobs(generation=0, jobs=jobs))


def test_equal_requests_give_equal_bytes() -> None:
    """In every process: a run that is resumed would find its orders changed otherwise."""
    seen = [
        subprocess.run(
            [sys.executable, "-c", PRINT_BYTES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert seen == [told_bytes().hex()] * 2
    other = replace(a_job(IN_PODS), first_life=3)
    assert order_bytes(TakeJobs(generation=0, jobs=(other,))).hex() not in seen
