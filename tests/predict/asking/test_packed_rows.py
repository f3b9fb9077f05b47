"""Is the padding of packed rows counted where memory is asked about?"""

import itertools

import pytest

from broadgauge.messages.synthetic_lengths import SyntheticLengths, lengths_by_quantile
from broadgauge.predict.asking import packed_rows
from broadgauge.predict.asking.packed_rows import padded_tokens
from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.case import Fabric
from broadgauge.probes.training.packing import pack_step
from broadgauge.specs.workloads.workload import TrainWorkload

BUDGET, BATCH, LONGEST = 60_000, 3840, 8192


def asked_about(data: dict[str, object], seq_len: int = LONGEST) -> float:
    """Tokens of a micro-batch, eight ranks."""
    train = TrainWorkload.model_validate(
        {
            "kind": "train",
            "model": {"seq_len": seq_len},
            "data": data,
            "packing": {"max_batch_len": BUDGET, "effective_batch_size": BATCH},
        }
    )
    case = training_case(train, gpu="h200", nodes=1, ranks_per_node=8, fabric=Fabric())
    assert train.packing is not None
    assert case.micro_batch * seq_len == padded_tokens(train, train.packing, 8)
    return case.micro_batch * seq_len


def largest(mean: int) -> int:
    """Of any rank's micro-batch, by its rows."""
    lengths = lengths_by_quantile(
        SyntheticLengths(num_samples=BATCH, num_tokens=BATCH * mean, longest=LONGEST)
    )
    of_ranks = itertools.chain(*pack_step(lengths, 8, BUDGET).micro_batches)
    return max(len(own) * max(lengths[n] for n in own) for own in of_ranks if own)


@pytest.mark.parametrize("mean", [40, 300, 1483])
def test_a_micro_batch_of_made_up_samples_has_their_padding(mean: int) -> None:
    """More than the tokens that are packed, where these fill it."""
    found = asked_about({"samples": 9872, "mean_length": mean, "max_length": LONGEST})
    assert found == largest(mean)
    assert found > min(BUDGET, BATCH * mean / 8)


def test_a_prepared_set_is_taken_for_the_made_up_ones_that_take_most() -> None:
    found = asked_about({"prepared": "nowhere"})
    made_up = [
        asked_about({"samples": 9872, "mean_length": 2**power, "max_length": LONGEST})
        for power in range(1, 14)
    ]
    assert found == max(made_up) > 1.3 * BUDGET


def test_a_step_is_packed_once_for_all_cases_that_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_about({"prepared": "nowhere"})
    monkeypatch.setattr(packed_rows, "pack_step", None)
    assert asked_about({"prepared": "elsewhere"}) > BUDGET


def test_samples_that_no_budget_takes_are_no_reason_to_fail() -> None:
    """The training is refused, and says so itself."""
    assert asked_about({"samples": 3, "mean_length": 70_000}, seq_len=70_000) == BUDGET
