"""Which kinds of workloads can be predicted? The only place here that asks."""

from typing import assert_never

from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    CommandWorkload,
    TrainWorkload,
    Workload,
)

COMMAND = "a command of yours, whose model and communication nobody knows"
NO_MODEL = "no model"
TOKEN_BUDGET = "batches by a budget of tokens, whose micro-batches follow from the samples' lengths"


def training_of(workload: Workload) -> TrainWorkload | None:
    """The training that is predicted; None: it is none."""
    predicted = in_predict(workload)
    return None if isinstance(predicted, str) else predicted


def in_predict(workload: Workload) -> TrainWorkload | str:
    """The training that is predicted, or what it is instead."""
    match workload:
        case TrainWorkload() if workload.packing is not None:
            return TOKEN_BUDGET
        case TrainWorkload():
            return workload
        case CommandWorkload():
            return COMMAND
        case CollectivesWorkload():
            return NO_MODEL
        case _:
            assert_never(workload)


def left_out_words(workload: Workload) -> str:
    """Why a workload that is not predicted is left out."""
    predicted = in_predict(workload)
    if predicted == TOKEN_BUDGET:
        return f"`{workload.name}` has {TOKEN_BUDGET}"
    return f"`{workload.name}` is no training (`kind: {workload.kind}`)"
