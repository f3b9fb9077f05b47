"""Did what figures depend on change in the middle of a run?

Pairs are compared within a block, so one block must not mix two torch versions. Each change of
environment begins a new block: from then on every record's block is its planned one plus the
number of planned blocks for each change so far (with 5 planned, block 3 becomes 8, then 13). A plan
that may grow counts the blocks that it may grow to.
"""

from collections.abc import Iterator, Mapping, Sequence

from broadgauge.specs.machines.cluster_words import fact_title
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.records.record import Environment, NodeFacts, Record

_OF_THE_CASE = {"variables", "gpus", "nodes"}
"""Differs between cases of one run (a smaller world uses fewer GPUs); the rest does not."""
_BESIDE_THE_POINT = {"git_commit", "nics"}
"""Kept with each record, but an edit elsewhere in a checkout, or a container's new NIC, must not
part the pairs of a run."""


class EnvironmentChanges:
    """The environments seen so far, by case."""

    def __init__(
        self, plan: Plan, records: Sequence[Record], environments: Mapping[str, Environment]
    ) -> None:
        planned = 1 + max((launch.block for launch in plan.launches), default=0)
        self._num_blocks = plan.most_blocks or planned
        self._changes = 0
        self._platforms: dict[str, PlatformKind | None] = {}
        self.follow_plan(plan)
        self._last: dict[PlatformKind | None, Environment] = {}
        """By platform: two of one run are expected to differ."""
        self._by_case: dict[str, Environment] = {}
        """Since the last change."""
        for record in records:
            self._follow(record, environments.get(record.environment or ""))

    def follow_plan(self, plan: Plan) -> None:
        """The plan has grown, and has cases that it had not."""
        self._platforms = {case.key: case.platform for case in plan.cases}

    def _follow(self, record: Record, environment: Environment | None) -> None:
        changes = record.block // self._num_blocks
        if changes > self._changes:
            self._changes = changes
            self._by_case.clear()
        if environment is not None:
            self._last[self._platforms.get(record.case_key)] = environment
            self._by_case[record.case_key] = environment

    def block(self, planned_block: int) -> int:
        """The block of a record written now."""
        return planned_block + self._changes * self._num_blocks

    def enter(self, environment: Environment, case_keys: Sequence[str]) -> tuple[str, ...]:
        """What changed since that platform's launch before, and since these cases' own last one?
        In words."""
        platform = self._platforms.get(case_keys[0])
        before = [(self._last.get(platform), _OF_THE_CASE | _BESIDE_THE_POINT)]
        before += [(self._by_case.get(key), _BESIDE_THE_POINT) for key in case_keys]
        changes: dict[str, None] = {}
        for other, left_out in before:
            if other is not None:
                changes.update(dict.fromkeys(_differences(other, environment, left_out)))
        if changes:
            self._changes += 1
            self._by_case.clear()
        self._last[platform] = environment
        self._by_case.update(dict.fromkeys(case_keys, environment))
        return tuple(changes)


def _differences(before: Environment, now: Environment, left_out: set[str]) -> list[str]:
    """`torch: 2.10.0 → 2.11.0`. None on either side is unknown, and no change."""
    of_fields = [
        f"{name}: {_shown(old)} → {_shown(new)}"
        for name in Environment.model_fields
        if name not in left_out
        and name != "cluster"
        and (old := getattr(before, name)) is not None
        and (new := getattr(now, name)) is not None
        and (_without_nics(old) != _without_nics(new) if name == "nodes" else old != new)
    ]
    return [*of_fields, *_of_cluster(before.cluster, now.cluster)]


def _of_cluster(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> Iterator[str]:
    """Fact by fact. One that is unknown on either side, or named by one alone, is no change."""
    for name, old in before.items():
        new = now.get(name)
        if old is not None and new is not None and old != new:
            yield f"{fact_title(name)}: {_shown(old)} → {_shown(new)}"


def _without_nics(nodes: Sequence[NodeFacts]) -> list[NodeFacts]:
    """Each node by itself, as far as a change of it parts a run; equal ones are stored once."""
    return sorted(
        (
            facts.model_copy(update={"nodes": (node,), "hostnames": (hostname,), "nics": ()})
            for facts in nodes
            for node, hostname in zip(facts.nodes, facts.hostnames, strict=True)
        ),
        key=lambda facts: facts.nodes,
    )


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
