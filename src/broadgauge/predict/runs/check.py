"""Do the trainings of a stored run take what the system file of its machine predicts?"""

from dataclasses import dataclass

from broadgauge.predict.runs.cases import RunCase, train_cases
from broadgauge.predict.system.steps import AskedStep, predict_steps, why_unknown_here
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStep:
    """A stored run's training, as the system file predicts it and as it was measured."""

    label: str
    network: str
    measured_s: float
    predicted_s: float
    measured_without_s: float | None
    predicted_without_s: float
    wire_bytes: float | None = None
    """Counted, headers included; None: one node."""
    network_bytes: float = 0.0
    """Predicted, payload alone."""

    @property
    def error_ratio(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_s / self.measured_s - 1


def cases_known_here(run: RunSummary) -> tuple[RunCase, ...]:
    """The trainings of a stored run that a system file can predict."""
    return tuple(each for each in train_cases(run) if why_unknown_here(each.workload) is None)


def unknown_here_words(run: RunSummary) -> tuple[str, ...]:
    """Why it can't predict the others, once a reason."""
    reasons = [why_unknown_here(each.workload) for each in train_cases(run)]
    return tuple(dict.fromkeys(filter(None, reasons)))


def check_run(system: System, run: RunSummary) -> tuple[CheckedStep, ...]:
    """Every training of a stored run whose kind a system file measures, predicted. Raises
    InputError for another machine's run, and where there is none of that kind."""
    stored = cases_known_here(run)
    if not stored:
        reasons = "; ".join(unknown_here_words(run)) or "it holds no training that succeeded"
        raise InputError(f"{run.folder.name} can't be checked: {reasons}")
    for each in stored:
        other = each.device_name not in ("", system.device.name)
        if other or each.case.device != system.device.kind:
            raise InputError(
                f"the system file is of {system.device.name}, and {run.folder.name} computed on "
                f"{each.device_name or each.case.device}",
                hint="`broadgauge calibrate` on the run's machine",
            )
    answers = predict_steps(
        system,
        [
            AskedStep(
                workload=each.workload,
                network=each.case.network,
                nodes=each.case.nodes,
                ranks_per_node=each.case.ranks_per_node,
            )
            for each in stored
        ],
    )
    return tuple(
        CheckedStep(
            label=each.case.label,
            network=each.case.network_name,
            measured_s=each.step_s.value,
            predicted_s=answer.step_s,
            measured_without_s=None if each.without_s is None else each.without_s.value,
            predicted_without_s=answer.without_s,
            wire_bytes=each.wire_bytes,
            network_bytes=answer.network_bytes,
        )
        for each, answer in zip(stored, answers, strict=True)
    )
