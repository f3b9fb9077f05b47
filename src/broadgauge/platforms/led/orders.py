"""From a launch that the engine asks for to what the leader and the agents are told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broadgauge.messages.agent import RunTrial
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.launch_order import (
    LaunchOrder,
    Mode,
    NodePlan,
    PhaseLimits,
    Program,
    RankPlan,
)
from broadgauge.messages.leader import INTERFACES_WORD, LIFE_WORD, PORT_WORD, AgentOrder, Job
from broadgauge.platforms.launch_plan import Programs, phase_limits
from broadgauge.platforms.rank_environment import LaunchFacts, RankPlace, platform_variables
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest, TrialRequest

_LOGS_WORD = "{logs}/"
"""How the value of a variable begins that names a file in the agent's folder for logs."""
_CACHE_OF_TORCH = "TORCHINDUCTOR_CACHE_DIR"
"""Source: torch/_inductor/runtime/cache_dir_utils.py of torch 2.11."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A machine of an allocation, as far as a launch's ranks depend on it."""

    num_cores: int
    interfaces: tuple[str, ...]
    """By which it reaches the others in this case; or INTERFACES_WORD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Where the nodes of one launch are, in their order."""

    seats: tuple[Seat, ...]
    master_address: str
    """Of the first, on the control network; or MASTER_WORD."""
    network: AskedNetwork | None = None
    """For agents that must look for it; None: the seats name its interfaces."""


SeatsOf = Callable[[Case], Seats]
"""Raises LaunchError where a machine has no interface of the case's network."""


def life_number(launch_id: str) -> tuple[str, int]:
    """`b0.l1r2` → the planned launch `b0.l1` and 2; 0 for its first life."""
    planned, found, number = launch_id.rpartition("r")
    return (planned, int(number)) if found and number.isdigit() else (launch_id, 0)


def job_of(
    request: LaunchRequest,
    seats_of: SeatsOf,
    trial_order: Callable[[TrialRequest, PhaseLimits], RunTrial],
    programs: Programs,
) -> Job:
    """All that the leader must know to run what is left of a launch. Raises LaunchError."""
    case = request.cases[0]
    job_id, first_life = life_number(request.launch_id)
    seats = seats_of(case)
    orders = tuple(
        AgentOrder(agent=node, order=_order(request, node, seats, programs))
        for node in range(case.nodes)
    )
    return Job(
        job_id=job_id,
        first_life=first_life,
        num_ranks=sum(len(each.order.ranks) for each in orders),
        orders=orders,
        trials=tuple(trial_order(trial, phase_limits(request.limits)) for trial in request.trials),
    )


def _order(request: LaunchRequest, node: int, seats: Seats, programs: Programs) -> LaunchOrder:
    """Of the agent that owns this node."""
    case, seat = request.cases[0], seats.seats[node]
    places = places_on(case, node, seats)
    variables = [rank_variables(case, place, facts_for(case, seat)) for place in places]
    common = set.intersection(*(set(each.items()) for each in variables))
    shared = {name: value for name, value in common if not value.startswith(_LOGS_WORD)}
    known = () if seat.interfaces == (INTERFACES_WORD,) else seat.interfaces
    return LaunchOrder(
        launch_id=LIFE_WORD,
        mode=Mode.PLAIN,
        num_nodes=case.nodes,
        network_name=case.network_name if case.nodes > 1 else "",
        nodes=(NodePlan(node=node, cores=(), interfaces=known, network=seats.network),),
        ranks=tuple(
            _rank(place, dict(each.items() - shared.items()), programs.of(case), _caches(case))
            for place, each in zip(places, variables, strict=True)
        ),
        environment=dict(sorted(shared.items())),
        link=None,
        limits=phase_limits(request.limits),
    )


def _caches(case: Case) -> dict[str, str]:
    """What a library would leave in the temporary folder of a host. Torch makes a folder there
    with its first optimizer; what a command of the user's keeps there for the next time is the
    user's."""
    if case.workload.is_under_torchrun or _CACHE_OF_TORCH in case.environment:
        return {}
    return {_CACHE_OF_TORCH: "torchinductor"}


def _rank(
    place: RankPlace, own: Mapping[str, str], program: Program, caches: Mapping[str, str]
) -> RankPlan:
    log_paths = {
        name: value.removeprefix(_LOGS_WORD)
        for name, value in sorted(own.items())
        if value.startswith(_LOGS_WORD)
    }
    return RankPlan(
        rank=place.rank,
        node=place.node,
        program=program,
        environment={name: value for name, value in sorted(own.items()) if name not in log_paths},
        log_paths={**caches, **log_paths},
        log=f"{LIFE_WORD}.rank{place.rank}.log",
    )


def rank_variables(case: Case, place: RankPlace, facts: LaunchFacts) -> dict[str, str]:
    """Without secrets: these the agent has from the tool."""
    own = {name: value for name, value in case.environment.items() if isinstance(value, str)}
    return platform_variables(case, place, facts) | own


def facts_for(case: Case, seat: Seat) -> LaunchFacts:
    """What the ranks of one machine have in common."""
    local = tuple(str(number) for number in range(case.ranks_per_node))
    return LaunchFacts(
        launch_id=LIFE_WORD,
        log_stem=f"{_LOGS_WORD}{LIFE_WORD}",
        interface=",".join(seat.interfaces),
        is_emulated=False,
        gpus=local * case.nodes if case.device == "cuda" else (),
    )


def places_on(case: Case, node: int, seats: Seats) -> tuple[RankPlace, ...]:
    """Where does each process of this machine stand? A `command` has one."""
    each = 1 if case.workload.is_under_torchrun else case.ranks_per_node
    return tuple(
        RankPlace(
            rank=node * each + local_rank,
            world_size=case.nodes * each,
            local_rank=local_rank,
            local_world_size=case.ranks_per_node,
            node=node,
            num_nodes=case.nodes,
            num_cores=seats.seats[node].num_cores,
            master_address=seats.master_address,
            master_port=PORT_WORD,
        )
        for local_rank in range(each)
    )
