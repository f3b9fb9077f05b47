"""Does each sample of a step get a place once, within the budget, on all ranks alike?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.messages.epochs import steps_per_epoch
from broadgauge.probes.training.packing import pack_step, samples_of_step

LENGTHS = st.lists(st.integers(1, 60), max_size=60)
RANKS = st.integers(1, 9)
BUDGET = st.integers(1, 100)


@given(LENGTHS, RANKS, BUDGET)
def test_every_sample_that_fits_has_one_place(lengths, ranks, budget):
    packed = pack_step(lengths, ranks, budget)
    placed = [each for batch in packed.micro_batches for taken in batch for each in taken]
    assert sorted([*placed, *packed.left_out]) == list(range(len(lengths)))
    assert all(lengths[each] > budget for each in packed.left_out)
    assert all(lengths[each] <= budget for each in placed)


@given(LENGTHS, RANKS, BUDGET)
def test_no_rank_takes_more_than_the_budget_and_no_micro_batch_is_empty(lengths, ranks, budget):
    for batch in pack_step(lengths, ranks, budget).micro_batches:
        loads = [sum(lengths[each] for each in taken) for taken in batch]
        assert len(loads) == ranks
        assert 0 < max(loads) <= budget


def slow_reference(lengths, ranks, budget):
    """By bisection's own definition: the longest run of samples, longest first, that fits when
    each goes to the least loaded rank; all runs are tried, and placed again from nothing."""

    def loads_of(run):
        loads = [0] * ranks
        for length in run:
            loads[loads.index(min(loads))] += length
        return loads

    rest = sorted((each for each in lengths if each <= budget), reverse=True)
    batches = []
    while rest:
        runs = range(1, len(rest) + 1)
        size = max(each for each in runs if max(loads_of(rest[:each])) <= budget)
        batches.append(sorted(loads_of(rest[:size])))
        rest = rest[size:]
    return batches


@given(LENGTHS, RANKS, BUDGET)
def test_it_is_the_slow_plain_packing(lengths, ranks, budget):
    packed = pack_step(lengths, ranks, budget)
    loads = [
        sorted(sum(lengths[each] for each in taken) for taken in batch)
        for batch in packed.micro_batches
    ]
    assert loads == slow_reference(lengths, ranks, budget)


@given(LENGTHS, RANKS, BUDGET, st.randoms(use_true_random=False))
def test_the_order_of_equal_lengths_alone_may_matter(lengths, ranks, budget, random):
    shuffled = random.sample(lengths, len(lengths))

    def loads(order):
        return [
            [sum(order[each] for each in taken) for taken in batch]
            for batch in pack_step(order, ranks, budget).micro_batches
        ]

    assert loads(shuffled) == loads(lengths)


def test_a_known_packing():
    """Two ranks of 10 tokens: 6 and 5 begin, 4 fills the first rank to 10 … by fewest tokens."""
    packed = pack_step([4, 6, 5, 11, 3, 2], 2, 10)
    assert packed.micro_batches == (((1, 4), (2, 0)), ((5,), ()))
    assert packed.left_out == (3,)


@pytest.mark.parametrize(
    ("samples", "batch", "steps"),
    [(9872, 3840, 3), (35456, 16, 2216), (35456, 32, 1108), (5, 8, 1)],
)
def test_an_epoch_is_counted_in_samples(samples, batch, steps):
    """The two articles' own: three optimizer steps, and 2,216 or 1,108."""
    assert steps_per_epoch(samples, batch) == steps


@given(st.integers(1, 50), st.integers(1, 20))
def test_an_epoch_reads_each_sample_once(samples, batch):
    steps = steps_per_epoch(samples, batch)
    for epoch in (0, 3):
        read = [samples_of_step(samples, batch, epoch * steps + step) for step in range(steps)]
        assert {each for each, _ in read} == {epoch}
        assert [place for _, places in read for place in places] == list(range(samples))
