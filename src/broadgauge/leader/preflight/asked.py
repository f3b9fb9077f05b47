"""What is to be looked at for the jobs to come, and which finding is of which job? No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import INTERFACES_WORD, Job
from broadgauge.messages.preflight import CheckedNetwork, PreflightFinding

_GIVEN = ("NCCL_", "GLOO_")
_Key = tuple[str, AskedNetwork | int]
"""A network's name, and what a launch asks for of it: in words, or so many named interfaces."""


@dataclass(slots=True)
class Asked:
    """All networks that launches of several machines cross, and the agents of all launches."""

    _names: dict[_Key, str] = field(default_factory=dict)
    _by_agent: dict[int, dict[str, CheckedNetwork]] = field(default_factory=dict)

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> "Asked":
        """Of these."""
        asked = cls()
        for job in jobs:
            for each in job.orders:
                asked._add(each.agent, each.order, has_others=len(job.orders) > 1)
        return asked

    @property
    def by_agent(self) -> dict[int, tuple[CheckedNetwork, ...]]:
        """In the order of agents; one that has no network stands there, too."""
        return {agent: tuple(own.values()) for agent, own in sorted(self._by_agent.items())}

    @property
    def networks(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._names.values())

    def name_of(self, order: LaunchOrder) -> str | None:
        """Of the network that a launch crosses; None: it was not asked for."""
        return self._names.get(_key(order))

    def is_within(self, other: "Asked") -> bool:
        """Was all of it asked for there?"""
        return set(self._pairs()) <= set(other._pairs())

    def _pairs(self) -> Iterator[tuple[int, object]]:
        keys = {name: key for key, name in self._names.items()}
        for agent, own in self._by_agent.items():
            yield agent, None
            yield from ((agent, keys[name]) for name in own)

    def _add(self, agent: int, order: LaunchOrder, *, has_others: bool) -> None:
        own = self._by_agent.setdefault(agent, {})
        if not order.network_name or not has_others:
            return
        key = _key(order)
        name = self._names.setdefault(key, self._free_name(order.network_name))
        node, given = order.nodes[0], _given(order)
        known = () if name not in own else own[name].given
        own[name] = CheckedNetwork(
            name=name,
            interfaces=node.interfaces,
            network=node.network,
            given=known if given in known else (*known, given),
        )

    def _free_name(self, name: str) -> str:
        taken = set(self._names.values())
        numbers = (name if n == 1 else f"{name} (#{n})" for n in range(1, len(taken) + 2))
        return next(each for each in numbers if each not in taken)


def _key(order: LaunchOrder) -> _Key:
    node = order.nodes[0]
    return order.network_name, node.network or len(node.interfaces)


def _given(order: LaunchOrder) -> dict[str, str]:
    variables = order.environment | (order.ranks[0].environment if order.ranks else {})
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(_GIVEN) and INTERFACES_WORD not in value
    }


def refusals_of(findings: Sequence[PreflightFinding], job: Job, asked: Asked) -> Iterator[str]:
    """Why this launch would fail or hang."""
    here = {each.agent for each in job.orders}
    if len(here) < 2:
        return
    network = asked.name_of(job.orders[0].order)
    for finding in findings:
        is_meant = finding.kind == "fails" and finding.network in (None, network)
        is_here = any(set(together) <= here for together in finding.agents)
        if is_meant and is_here and _concerns(finding, job):
            yield finding.text


def _concerns(finding: PreflightFinding, job: Job) -> bool:
    if finding.of == "NCCL":
        return any(trial.command.layout.backend == "nccl" for trial in job.trials)
    if finding.of == "our own workloads":
        return any(rank.program == "worker" for each in job.orders for rank in each.order.ranks)
    return True
