"""Which kinds of workloads can be predicted? The only place here that asks."""

from dataclasses import dataclass
from typing import assert_never

from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    CommandWorkload,
    StorageWorkload,
    TrainWorkload,
    Workload,
)

_COMMAND = "a command of yours, whose model and communication nobody knows"
_TOKEN_BUDGET = (
    "batches by a budget of tokens, whose micro-batches follow from the samples' lengths"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPredicted:
    """Why a workload is not predicted."""

    of_experiment: str
    """`NAME is no training …`: what is said where it is left out among others."""
    of_run: str | None = None
    """`it runs …`: of a run that has no other; None: it holds no training."""


def packed_or_not(workload: Workload) -> TrainWorkload | None:
    """Any training, with samples packed by tokens, too; None: it is none."""
    return workload if isinstance(workload, TrainWorkload) else None


def training_of(workload: Workload) -> TrainWorkload | None:
    """The training that is predicted; None: it is none."""
    predicted = in_predict(workload)
    return None if isinstance(predicted, NotPredicted) else predicted


def in_predict(workload: Workload) -> TrainWorkload | NotPredicted:
    """The training that is predicted, or why there is none."""
    no_training = f"`{workload.name}` is no training (`kind: {workload.kind}`)"
    match workload:
        case TrainWorkload() if workload.packing is not None:
            return NotPredicted(
                of_experiment=f"`{workload.name}` has {_TOKEN_BUDGET}",
                of_run=f"its training has {_TOKEN_BUDGET}",
            )
        case TrainWorkload():
            return workload
        case CommandWorkload():
            return NotPredicted(of_experiment=no_training, of_run=f"it runs {_COMMAND}")
        case CollectivesWorkload() | StorageWorkload():
            return NotPredicted(of_experiment=no_training)
        case _:
            assert_never(workload)


def left_out_words(workload: Workload) -> str:
    """Why a workload that is not predicted is left out."""
    predicted = in_predict(workload)
    assert isinstance(predicted, NotPredicted), workload.name
    return predicted.of_experiment
