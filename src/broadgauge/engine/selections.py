"""Which rules, hypotheses and published figures speak of no case that is there?"""

from collections.abc import Iterator, Sequence

from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.selector import CaseSelector


def idle_notes(
    experiment: Experiment, matrix: Sequence[Case], cases: Sequence[Case]
) -> Iterator[str]:
    """A sentence for each selector that is about nothing.

    `matrix`: all cases, also those left out. `cases`: those that are run.
    """
    for place, rule in enumerate(experiment.skip_if):
        if not _count(rule, matrix):
            yield f"skip_if[{place}] matches no case: {_words(rule)}"
    for hypothesis in experiment.hypotheses:
        for key, selector in (("cases", hypothesis.cases), ("over", hypothesis.over)):
            if selector is not None and not _count(selector, cases):
                yield (
                    f"hypothesis {hypothesis.name}: `{key}` matches no case that is run: "
                    f"{_words(selector)}"
                )
    for place, figure in enumerate(experiment.published):
        for key, selector in (("cases", figure.cases), ("over", figure.over)):
            count = 1 if selector is None else _count(selector, cases)
            if count != 1:
                found = "no case that is run" if count == 0 else f"{count} cases, and one is meant"
                yield f"published[{place}] ({figure.label}): `{key}` matches {found}"


def _count(selector: CaseSelector, cases: Sequence[Case]) -> int:
    return sum(selector.matches(case) for case in cases)


def _words(selector: CaseSelector) -> str:
    """`network slow-*, nodes 2`: each key that was given."""
    given = ((key, getattr(selector, key)) for key in CaseSelector.model_fields)
    parts = (f"{key} {' or '.join(map(str, each))}" for key, each in given if each is not None)
    return ", ".join(parts) or "every case"
