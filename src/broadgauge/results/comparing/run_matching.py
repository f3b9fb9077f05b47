"""Which case of one run is which of another, and what did the user change in it?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.results.model import CaseSummary, RunComparison, RunSummary
from broadgauge.specs.case import Case, case_name
from broadgauge.specs.errors import InputError

_LONGEST_VALUE = 60
_LABELS = frozenset({"name", "description", "networks", "platforms"})
"""Of a workload and a network: words for people, which measure nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedCase:
    """A case of run A and the one of run B that it is compared with."""

    a: CaseSummary
    b: CaseSummary
    differences: tuple[str, ...]
    """`workload.batch_per_rank: 4 in A, 8 in B`; empty where they measure the same thing."""


def match_cases(a: RunSummary, b: RunSummary) -> tuple[MatchedCase, ...]:
    """Each case of A that B has, in A's order: the same settings, else the same names.

    The same names are what `--against` goes by: workload, network, shape, backend, platform. A
    name that a run has twice among those left decides nothing. Baselines are left out.
    """
    same = [(one, other) for one in a.candidates if (other := _twin(one, b)) is not None]
    taken = {summary.case.key for pair in same for summary in pair}
    left_a, left_b = ([s for s in run.candidates if s.case.key not in taken] for run in (a, b))
    names_a, names_b = (Counter(case_name(s.case) for s in left) for left in (left_a, left_b))
    by_name = {case_name(s.case): s for s in left_b}
    changed = [
        (one, by_name[name])
        for one in left_a
        if names_a[name := case_name(one.case)] == names_b[name] == 1
    ]
    place = {summary.case.key: at for at, summary in enumerate(a.candidates)}
    pairs = sorted((*same, *changed), key=lambda pair: place[pair[0].case.key])
    return tuple(
        MatchedCase(a=one, b=other, differences=tuple(case_differences(one.case, other.case)))
        for one, other in pairs
    )


def alone(summaries: Sequence[CaseSummary], matched: Sequence[CaseSummary]) -> tuple[str, ...]:
    """Labels of the cases that are not among those that were matched."""
    keys = {summary.case.key for summary in matched}
    return tuple(s.case.label for s in summaries if s.case.key not in keys)


def case_differences(a: Case, b: Case) -> Iterator[str]:
    """Each setting that decides what is measured and is another in B, with both values."""
    if a.key == b.key:
        return
    forms = [case.model_dump(mode="json", exclude={"arm"}) for case in (a, b)]
    for form in forms:
        for part in ("workload", "network"):
            if form[part] is not None:
                form[part] = {k: v for k, v in form[part].items() if k not in _LABELS}
                form[part].pop("environment", None)  # merged into the case's own
    yield from _differences("", *forms)


def _twin(summary: CaseSummary, run: RunSummary) -> CaseSummary | None:
    found = run.case(summary.case.key)
    return found if found is not None and found.case.arm == "candidate" else None


def _differences(place: str, a: object, b: object) -> Iterator[str]:
    if a == b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            yield from _differences(f"{place}.{key}".lstrip("."), a.get(key), b.get(key))
    else:
        yield f"{place}: {_shown(a)} in A, {_shown(b)} in B"


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(words) <= _LONGEST_VALUE:
        return words
    return f"{words[: _LONGEST_VALUE // 2]} … {words[-_LONGEST_VALUE // 2 :]}"


def check_any(compared: RunComparison) -> None:
    """Was anything compared? Raises InputError where not."""
    if compared.rows:
        return
    is_in_both = len(compared.only_in_a) < len(compared.a.candidates)
    raise InputError(
        "no case that both runs have was measured in both"
        if is_in_both
        else "the two runs have no case in common, not even by name",
        hint="cases match by the names of workload and network, shape, backend and platform",
    )
