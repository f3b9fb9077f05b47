"""What does one case of a run say to Python, and which one is meant?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broadgauge.analysis.model import JudgedCase
from broadgauge.api.asking import text
from broadgauge.results.model import CaseSummary
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Record, Status
from broadgauge.specs.workloads.metrics import unit_of

SELECTING = ("workload", "network", "shape", "arm", "backend", "platform")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Case:
    """One case of a run over all its launches: what was measured, and what it means."""

    _summary: CaseSummary
    _judged: JudgedCase

    def __repr__(self) -> str:
        return f"<Case {self.label}: {self.verdict}, {self.num_ok} of {self.num_planned} trials>"

    @property
    def key(self) -> str:
        """The hash of all that decides what was measured: the same in any run of the same case."""
        return self._judged.key

    @property
    def label(self) -> str:
        """`train 2x1 slow`."""
        return self._judged.label

    @property
    def workload(self) -> str:
        """Its name in the experiment."""
        return self._summary.case.workload.name

    @property
    def network(self) -> str:
        """Its name in the experiment; `one node` where nothing joins nodes."""
        return self._summary.case.network_name

    @property
    def shape(self) -> str:
        """`2x1`: nodes x ranks a node."""
        return self._summary.case.shape

    @property
    def verdict(self) -> str:
        """network-bound, host-bound, compute-bound or unknown."""
        return self._judged.verdict.bound.value

    @property
    def sentence(self) -> str:
        """The verdict and why, as `show` prints it."""
        return self._judged.verdict.sentence

    @property
    def evidence(self) -> tuple[str, ...]:
        """The figures that lead to the verdict, with units."""
        return self._judged.verdict.evidence

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """By metric: `value` over launches with the ends `low` and `high` of its 95 % interval."""
        return self._summary.estimates

    def figure(self, metric: str) -> Estimate:
        """One of the estimates.

        Raises InputError where it was not measured, with the reason.
        """
        found = self.estimates.get(text("metric", metric))
        if found is not None:
            return found
        reason = self._summary.missing.get(metric)
        if reason is not None:
            raise InputError(f"{self.label} has no {metric}: {reason}")
        hint = did_you_mean(metric, self.estimates)
        raise InputError(f"{self.label} has no {metric}", hint=hint)

    @property
    def num_ok(self) -> int:
        """Trials that succeeded; only these count in an estimate."""
        return self._summary.num_ok

    @property
    def num_failed(self) -> int:
        """Trials that failed or timed out."""
        return self._summary.num_failed

    @property
    def num_planned(self) -> int:
        """Trials in all."""
        return self._summary.num_planned

    @property
    def errors(self) -> tuple[str, ...]:
        """What went wrong, each message once."""
        return errors_of(self._summary.records)


def select_case(cases: Sequence[Case], label: str | None, named: Mapping[str, str]) -> Case:
    """The one that is meant. Raises InputError."""
    unknown = next((name for name in named if name not in SELECTING), None)
    if unknown is not None:
        raise InputError(
            f"a case is not chosen by `{unknown}`",
            hint=did_you_mean(unknown, SELECTING) or f"by {', '.join(SELECTING)}",
        )
    label = None if label is None else text("label", label)
    labels = [case.label for case in cases]
    found = [case for case in cases if label in (None, case.label, case.key)]
    found = [case for case in found if all(_named(case, k) == v for k, v in named.items())]
    if len(found) == 1:
        return found[0]
    asked = ", ".join(([label] if label else []) + [f"{k}={v}" for k, v in named.items()])
    if not found:
        hint = did_you_mean(label, labels) if label else f"cases: {', '.join(labels)}"
        raise InputError(f"no case is {asked}", hint=hint)
    meant = ", ".join(case.label for case in found)
    raise InputError(
        f"{len(found)} cases are {asked or 'in this run'}: {meant}", hint=_apart(found)
    )


def _apart(cases: Sequence[Case]) -> str:
    """By which name they are told apart: `add arm="candidate"`; else by their labels."""
    for name in SELECTING:
        values = list(dict.fromkeys(_named(case, name) for case in cases))
        if len(values) == len(cases):
            return f'add {name}="{values[0]}"' + f" (or {', '.join(values[1:])})"
    return f'by its label: run.case("{cases[0].label}")'


def _named(case: Case, name: str) -> str:
    if name in ("workload", "network", "shape"):
        value: str = getattr(case, name)
        return value
    return str(getattr(case._summary.case, name))


def errors_of(records: Sequence[Record]) -> tuple[str, ...]:
    """Of trials that failed."""
    errors = [record.error for record in records if record.status is not Status.OK]
    return tuple(dict.fromkeys(error.message for error in errors if error is not None))


def estimate_rows(cases: Sequence[Case]) -> Sequence[dict[str, Any]]:
    return [
        {
            "case_key": case.key,
            "label": case.label,
            "workload": case.workload,
            "network": case.network,
            "shape": case.shape,
            "verdict_bound": case.verdict,
            "metric": metric,
            "unit": unit_of(metric),
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "launches": estimate.launches,
            "trials": estimate.trials,
            "method": estimate.method,
        }
        for case in cases
        for metric, estimate in case.estimates.items()
    ]
