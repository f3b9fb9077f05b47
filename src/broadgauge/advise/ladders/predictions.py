"""What does the predictor say of a ladder's trainings, without having seen their times?

From a system file of this machine where there is one, else from the catalog's figures of the GPU
that the run names. For trainings on CPUs, of which the catalog knows nothing, only from the file.
"""

from broadgauge.catalog.gpus import find_gpu
from broadgauge.predict.asking.workload_case import fabric_of, training_case, why_unknown
from broadgauge.predict.predictor import predict
from broadgauge.predict.runs.cases import RunCase, train_cases
from broadgauge.predict.runs.check import cases_known_here, check_run
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import InputError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.machines.system import System

BY_SYSTEM = "predicted with a system file, no interval"
BY_CATALOG = "predicted from the catalog, 80 % interval"


def predicted_steps(run: RunSummary, system: System | None = None) -> dict[str, Estimate]:
    """Step times of the run's trainings by case key; empty where none can be predicted.

    Raises InputError where the system file is of another machine.
    """
    if not any(each.case.link is not None for each in train_cases(run)):
        return {}
    if system is not None:
        known = cases_known_here(run)
        checked = zip(known, check_run(system, run), strict=True) if known else ()
        return {
            stored.case.key: _estimate(step.predicted_s, None, None, BY_SYSTEM)
            for stored, step in checked
        }
    predicted = ((each, _from_catalog(each)) for each in train_cases(run))
    return {each.case.key: step for each, step in predicted if step is not None}


def _from_catalog(stored: RunCase) -> Estimate | None:
    """None for CPUs, GPUs and trainings that the predictor does not know."""
    gpu = find_gpu(stored.device_name) if stored.case.device == "cuda" else None
    if gpu is None or stored.case.link is None:
        return None
    nodes, ranks_per_node = stored.case.nodes, stored.case.ranks_per_node
    if why_unknown(stored.workload, nodes, ranks_per_node) is not None:
        return None
    question = training_case(
        stored.workload,
        gpu=gpu.name,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        fabric=fabric_of(stored.case.link),
    )
    try:
        (answer,) = predict([question])
    except InputError:
        return None
    step = answer.step_time_s
    return _estimate(step.value, step.low, step.high, BY_CATALOG)


def _estimate(value: float, low: float | None, high: float | None, method: str) -> Estimate:
    return Estimate(value=value, low=low, high=high, launches=0, trials=0, method=method)
