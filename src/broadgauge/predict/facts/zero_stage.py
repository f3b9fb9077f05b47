"""Which of its states does a training split over its data-parallel ranks?"""

from broadgauge.catalog.frameworks import framework_named
from broadgauge.predict.case import TrainingCase


def zero_stage(case: TrainingCase) -> int:
    """What is split over the data-parallel ranks (0: nothing), where it isn't said.

    ZeRO's stage 3 can move everything to the host's memory. Stages of a pipeline know stage 1 only,
    and without DeepSpeed tensor ranks are Megatron's, which moves its optimizer alone. Source:
    deepspeed.ai, configuration, `zero_optimization`; Megatron-LM, `--optimizer-cpu-offload`.
    """
    if case.zero_stage is not None or not case.cpu_offload:
        return case.zero_stage or 0
    is_megatron = case.tensor_parallel > 1 and not framework_named(case.framework).uses_deepspeed
    return 1 if case.pipeline_parallel > 1 or is_megatron else 3
