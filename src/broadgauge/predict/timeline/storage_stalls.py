"""How much longer is a step because it waits for its storage?

Loaders run beside the step, from its begin: what they need longer than it is a stall. A save comes
after the step, on average its share of the steps between two.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from broadgauge.predict.case import Wait
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns

if TYPE_CHECKING:
    from broadgauge.predict.timeline.evaluation import Evaluation

_NONE = Wait()


def with_storage(found: "Evaluation", columns: Columns) -> "Evaluation":
    """The same, with what each case waits for its storage; most have none."""
    waits = [case.storage_waits for case in columns.cases]
    if not any(waits):
        return found
    batches = [_NONE if each is None else each.batch for each in waits]
    after = [
        _NONE
        if each is None
        else Wait(
            value_s=each.unhidden.value_s + each.saving(each.save.value_s),
            low_s=each.unhidden.low_s + each.saving(each.save.low_s),
            high_s=each.unhidden.high_s + each.saving(each.save.high_s),
        )
        for each in waits
    ]

    def each_s(waits: Sequence[Wait], end: str) -> Times:
        return np.array([getattr(each, end) for each in waits])

    def stall_s(end: str) -> Times:
        beside_s = found.step_s - found.storage_s
        return np.maximum(0.0, each_s(batches, end) - beside_s) + each_s(after, end)

    value_s = stall_s("value_s")
    busy_s = each_s(batches, "value_s") + each_s(after, "value_s")
    return replace(
        found,
        step_s=found.step_s + value_s,
        storage_s=found.storage_s + value_s,
        storage_low_s=found.storage_s + np.minimum(value_s, stall_s("low_s")),
        storage_high_s=found.storage_s + np.maximum(value_s, stall_s("high_s")),
        storage_busy_s=found.storage_busy_s + busy_s,
    )
