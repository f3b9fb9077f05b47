"""Which cases does a hypothesis, a published figure or a rule of omission speak of?"""

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from broadgauge.specs.base import Spec
from broadgauge.specs.case import Case


def _as_list(value: object) -> object:
    return value if value is None or isinstance(value, (list, tuple)) else (value,)


Pattern = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_as_list), Field(min_length=1)]
"""One name or several, with `*` and `?` as in file names: `ethernet-*`."""
Numbers = Annotated[tuple[int, ...], BeforeValidator(_as_list), Field(min_length=1)]


class CaseSelector(Spec):
    """Every key that is given must match; a list means any of its values."""

    workload: Patterns | None = None
    """A workload's name; that of an entry with axes means all that came of it."""
    network: Patterns | None = None
    """A network's or path's name; `one node` where there is none."""
    storage: Patterns | None = None
    """A storage's name."""
    shape: Patterns | None = None
    """Nodes x ranks per node, such as `2x1`."""
    backend: Patterns | None = None
    """`gloo` or `nccl`."""
    platform: Patterns | None = None
    """In a run with several platforms: which one, such as `emulated`."""
    nodes: Numbers | None = None
    """Number of nodes; a list means any of these."""
    ranks_per_node: Numbers | None = None
    """Ranks per node; a list means any of these."""
    world_size: Numbers | None = None
    """Number of ranks; a list means any of these."""

    def matches(self, case: Case) -> bool:
        """Is this case meant?"""
        texts = (
            (self.workload, case.workload.name),
            (self.network, case.plain_network_name),
            (self.storage, case.storage_name),
            (self.shape, case.shape),
            (self.backend, case.backend),
            (self.platform, case.platform or ""),
        )
        numbers = (
            (self.nodes, case.nodes),
            (self.ranks_per_node, case.ranks_per_node),
            (self.world_size, case.world_size),
        )
        return all(
            patterns is None or any(fnmatchcase(text, pattern) for pattern in patterns)
            for patterns, text in texts
        ) and all(wanted is None or number in wanted for wanted, number in numbers)

    @property
    def label(self) -> str:
        """`train, ethernet-*`: for people."""
        given = (getattr(self, name) for name in CaseSelector.model_fields)
        parts = (" or ".join(map(str, values)) for values in given if values is not None)
        return ", ".join(parts) or "every case"


class SkippedCases(CaseSelector):
    """Cases that are left out of the matrix."""

    reason: Annotated[str, Field(min_length=1)] = "`skip_if` names it"
    """Why these cases are left out; stands in the plan's notes."""
