"""What does a storage add to a run's step? A modelled wait beside what was measured."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from broadgauge.predict.case import TrainingCase, Wait
from broadgauge.predict.prediction import Interval
from broadgauge.predict.storage.of_training import on_storage
from broadgauge.predict.whatif.changes import UsedStorage, WhatIfAnswer


def with_storage(
    answer: WhatIfAnswer, question: TrainingCase, used: UsedStorage, measured_tokens_per_s: float
) -> WhatIfAnswer:
    """The answer's step is without any storage: the reference trainer waits for none."""
    step = answer.step_s
    waits = on_storage(question, used.storage, used.use, step.value)

    def stall_s(of: Callable[[Wait], float]) -> float:
        batch_s = max(0.0, of(waits.batch) - step.value)
        return batch_s + of(waits.unhidden) + waits.saving(of(waits.save))

    value_s = stall_s(lambda wait: wait.value_s)
    low_s, high_s = stall_s(lambda wait: wait.low_s), stall_s(lambda wait: wait.high_s)
    below_s = (step.value - step.low, value_s - min(value_s, low_s))
    above_s = (step.high - step.value, max(value_s, high_s) - value_s)
    whole_s = step.value + value_s
    tokens_per_s = answer.tokens_per_s * step.value / whole_s
    return replace(
        answer,
        step_s=Interval(
            value=whole_s,
            low=whole_s - float(np.hypot(*below_s)),
            high=whole_s + float(np.hypot(*above_s)),
        ),
        tokens_per_s=tokens_per_s,
        speedup_ratio=tokens_per_s / measured_tokens_per_s,
        storage=used.label,
        waits=waits,
        storage_s=value_s,
    )
