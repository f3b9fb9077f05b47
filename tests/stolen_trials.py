"""Which trials had cores taken away, by the product's own count, and what may be said of them?

Steal comes in bursts, and one that spoils a trial may be little of all that a test runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

AnyRecord = TypeVar("AnyRecord", bound=Mapping[str, Any])


class StolenError(AssertionError):
    """A failed assertion on trials of which one had cores taken away."""


def says_that_cores_were_stolen(record: Mapping[str, Any]) -> bool:
    """By the product's own count."""
    return any(finding["rule"] == "stolen-cores" for finding in record["findings"])


def undisturbed(trials: Sequence[AnyRecord]) -> list[AnyRecord]:
    """Those that had their cores; all of them where none had."""
    return [trial for trial in trials if not says_that_cores_were_stolen(trial)] or [*trials]


@contextmanager
def judging(trials: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """What is asserted inside rests on these records: where cores were taken from one of them, a
    failed assertion accuses nobody (tests/disturbance.py)."""
    num_stolen = sum(map(says_that_cores_were_stolen, trials))
    try:
        yield
    except AssertionError as error:
        if num_stolen == 0:
            raise
        raise StolenError(f"{num_stolen} of {len(trials)} trials had no cores: {error}") from error
