"""What does a measurement mean? A verdict: one word, one sentence, and its evidence."""

from dataclasses import dataclass
from enum import StrEnum


class Bound(StrEnum):
    """What a case waits for most."""

    NETWORK = "network-bound"
    HOST = "host-bound"
    """This machine's cores or its own links are the limit, not the network emulated."""
    COMPUTE = "compute-bound"
    STORAGE = "storage-bound"
    """It writes and reads files, and does nothing else."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    bound: Bound
    is_slower_than_one_node: bool | None
    """More nodes give fewer tokens/s in all than one; None where the interval can't tell, or where
    it was not measured."""
    sentence: str
    """Begins with the bound: `network-bound: 81 % of each step waits for the network; …`; of what
    was imported with what is said of its bandwidth: `too low: …`."""
    evidence: tuple[str, ...]
    """Figures with units that lead to the sentence, one each."""


def verdict_that(
    bound: Bound,
    why: str,
    evidence: tuple[str, ...] = (),
    *,
    is_slower: bool | None = None,
) -> Verdict:
    """A verdict whose sentence says the bound, and why."""
    return Verdict(
        bound=bound,
        is_slower_than_one_node=is_slower,
        sentence=f"{bound.value}: {why}",
        evidence=evidence,
    )
