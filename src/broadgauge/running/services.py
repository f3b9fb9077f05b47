"""What is handed to the engine? The probes merge, advise judges, the catalog knows peaks."""

from broadgauge.advise.trial_findings import findings
from broadgauge.catalog.gpus import find_gpu
from broadgauge.engine.interrupts import Interrupts
from broadgauge.engine.ports import Mask, Observer, Series, Services
from broadgauge.merging.merge import merge
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Environment, Finding, Record


def make_services(observer: Observer, interrupts: Interrupts, mask: Mask) -> Services:
    """For a real run."""
    return Services(
        merger=merge,
        judge=_judge,
        peak_flops=_peak_flops,
        observer=observer,
        mask=mask,
        interrupts=interrupts,
    )


def _judge(case: Case, record: Record, series: Series) -> tuple[Finding, ...]:
    """What advise says of a trial, from its per-step series of seconds among others."""
    per_step = {
        name: [value for value in values if isinstance(value, float)]
        for name, values in series.items()
    }
    return findings(case, record, {name: values for name, values in per_step.items() if values})


def _peak_flops(case: Case, environment: Environment) -> float | None:
    """FLOP/s of one GPU in the workload's data type; None on CPUs and for unknown GPUs."""
    dtype = case.workload.arithmetic_dtype
    if case.device != "cuda" or not environment.gpus or dtype is None:
        return None
    gpu = find_gpu(environment.gpus[0].name)
    return None if gpu is None else gpu.peak_flops(dtype)
