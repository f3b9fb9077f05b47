"""What is asked in the place of a training that takes samples by a budget of tokens?

Predictions leave such trainings out, since their micro-batches follow from the lengths of samples.
Where only the mean length is known, as of the articles' data sets, this can be asked.
"""

import math
from dataclasses import replace

from broadgauge.predict.case import TrainingCase
from broadgauge.specs.workloads.workload import SyntheticData, TrainWorkload


def of_one_length(case: TrainingCase, train: TrainWorkload) -> TrainingCase:
    """This training's case as if every sample were as long as they are on average, and so none
    padded; without packing the case as it is.

    A step has its samples, spread evenly over the ranks, in as few micro-batches as hold their
    tokens; packing of unequal lengths makes as many, or up to 8 % more.
    Source: instructlab-training 0.16.2, as told in probes/training/packing.py.
    """
    if train.packing is None:
        return case
    assert isinstance(train.data, SyntheticData), "made-up samples alone say their mean length"
    length, samples = train.data.mean_length, train.packing.effective_batch_size
    of_rank = samples / case.data_parallel
    micro_batches = math.ceil(of_rank * length / train.packing.max_batch_len)
    return replace(
        case, seq_len=length, global_batch=float(samples), micro_batch=of_rank / micro_batches
    )
