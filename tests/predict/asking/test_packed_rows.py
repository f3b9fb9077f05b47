"""Is the padding of packed rows counted where memory is asked about?"""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from broadgauge.messages.synthetic_lengths import SyntheticLengths, lengths_by_quantile
from broadgauge.predict.asking.packed_rows import padded_tokens
from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.case import Fabric
from broadgauge.probes.training.packing import pack_step
from broadgauge.specs.workloads.workload import TrainWorkload

SEQ_LEN = 16


def packed(data: dict[str, object], budget: int, batch: int, seq_len: int) -> TrainWorkload:
    return TrainWorkload.model_validate(
        {
            "kind": "train",
            "model": {"seq_len": seq_len},
            "data": data,
            "packing": {"max_batch_len": budget, "effective_batch_size": batch},
        }
    )


def largest(lengths: list[int], ranks: int, budget: int) -> int:
    """Of any rank's micro-batch, by its rows."""
    packed_step = pack_step(lengths, ranks, budget)
    of_ranks = itertools.chain(*packed_step.micro_batches)
    return max((len(own) * max(lengths[n] for n in own) for own in of_ranks if own), default=0)


@given(st.lists(st.integers(2, SEQ_LEN), min_size=1), st.integers(1, 4), st.integers(2, 99))
def test_no_step_of_a_prepared_set_is_padded_to_more(
    lengths: list[int], ranks: int, budget: int
) -> None:
    train = packed({"prepared": "a"}, budget, len(lengths), SEQ_LEN)
    assert train.packing is not None
    assert padded_tokens(train, train.packing, ranks) >= largest(lengths, ranks, budget)


def test_one_long_sample_and_many_short_ones_are_the_most() -> None:
    """On one rank: 50 tokens and 25 samples of 2 are 26 rows of 50; and of 16 at most, 43."""
    for longest, lengths in ((2048, [50] + [2] * 25), (16, [16] + [2] * 42)):
        train = packed({"prepared": "a"}, 100, 1000, longest)
        assert train.packing is not None
        found = padded_tokens(train, train.packing, 1)
        assert found == len(lengths) * lengths[0] == largest(lengths, 1, 100)
    few = packed({"prepared": "a"}, 100, 3, 2048)
    assert few.packing is not None
    assert padded_tokens(few, few.packing, 1) == 3 * 96 == largest([96, 2, 2], 1, 100)


def test_a_micro_batch_of_made_up_samples_has_their_padding() -> None:
    """A budget of 60,000 tokens is filled with rows padded to the longest: more tokens, and far
    fewer than the most that such a budget might take."""
    data: dict[str, object] = {"samples": 9872, "mean_length": 1483, "max_length": 8192}
    train = packed(data, 60_000, 3840, 8192)
    asked = SyntheticLengths(num_samples=3840, num_tokens=3840 * 1483, longest=8192)
    by_hand = largest(list(lengths_by_quantile(asked)), 8, 60_000)
    case = training_case(train, gpu="h200", nodes=1, ranks_per_node=8, fabric=Fabric())
    assert case.micro_batch * 8192 == by_hand
    assert 60_000 < by_hand < 20 * 60_000
