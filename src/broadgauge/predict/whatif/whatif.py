"""What would this run give on another network, on more nodes, split otherwise?

The run itself is the calibration. Its step with communication off is what it computes, its own
collectives (or its link's rate) are what its network carries, and one factor stretches the model's
communication until the model's step is the run's own step. Then only what is asked for changes.
Without a change the answer is the measured step.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from broadgauge.catalog.gpus import Gpu
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.prediction import Interval
from broadgauge.predict.runs.cases import RunCase, run_paths, train_cases
from broadgauge.predict.runs.found_network import is_answerable
from broadgauge.predict.whatif.changes import Change, Check, WhatIf, WhatIfAnswer
from broadgauge.predict.whatif.model import RunModel
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import System


def what_if(
    run: RunSummary,
    base: RunCase,
    changes: Sequence[Change],
    *,
    system: System | None = None,
    knowledge: Knowledge | None = None,
    gpus: Sequence[Gpu] | None = None,
) -> WhatIf:
    """Raises InputError for what this run can't answer. `gpus`: those that are known; None: the
    shipped ones."""
    if system is not None:
        check_same_machine(base, system)
    known = default_knowledge() if knowledge is None else knowledge
    model = RunModel(base, run_paths(run), system, known, gpus)
    asked = [model.beyond_own(change) for change in changes]
    siblings = [
        other
        for other in train_cases(run)
        if other.case.world_size == base.case.world_size
        and other.case.nodes == base.case.nodes
        and other.workload == base.workload
        and other.case.backend == base.case.backend
        and other.case.network != base.case.network
        and other.case.network is not None
        and is_answerable(base, other.case.network)
    ]
    checks = [
        Check(
            label=other.case.network_name,
            measured_s=other.step_s.value,
            predicted_s=model.answer(Change(network=other.case.network)).step_s.value,
        )
        for other in siblings
    ]
    return WhatIf(
        run_name=run.folder.name,
        base=base,
        without_s=model.without_s,
        is_without_measured=base.without_s is not None,
        communication_ratio=model.ratio,
        excess_s=model.excess_s,
        is_identified=model.is_identified,
        basis=model.own.basis,
        machine_words=model.machine_words,
        answers=tuple(_checked(model.answer(change), change, checks) for change in asked),
        checks=tuple(checks),
    )


def _checked(answer: WhatIfAnswer, change: Change, checks: Sequence[Check]) -> WhatIfAnswer:
    """No surer than the run's own other networks were predicted: as wide as the worst of them."""
    if change.is_nothing or not checks:
        return answer
    worst = math.exp(max(abs(math.log(check.predicted_s / check.measured_s)) for check in checks))
    step = answer.step_s
    wider = Interval(
        value=step.value,
        low=min(step.low, step.value / worst),
        high=max(step.high, step.value * worst),
    )
    return replace(answer, step_s=wider)


def check_same_machine(base: RunCase, system: System) -> None:
    """A system file of another device says nothing of this run. Raises InputError."""
    device = base.case.device
    if system.device.kind != device or (
        base.device_name and system.device.name != base.device_name
    ):
        raise InputError(
            f"the system file is of {system.machine.hostname} ({system.device.name}), and the run "
            f"computed on {base.device_name or device}",
            hint="`broadgauge calibrate` on the run's machine, or leave --system out",
        )
