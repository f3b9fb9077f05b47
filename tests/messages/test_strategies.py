"""How do strategies split the ranks?"""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.catalog.traffic import groups_of
from broadgauge.messages.rank import RankGroup
from broadgauge.messages.strategies import STRATEGIES, split_of
from broadgauge.messages.vocabulary import Strategy


def test_every_strategy_says_what_it_shares():
    assert set(STRATEGIES) == set(get_args(Strategy))


@given(
    st.sampled_from(get_args(Strategy)),
    st.integers(1, 6),
    st.integers(1, 8),
    st.integers(1, 16) | st.none(),
)
def test_shards_and_replicas_cover_each_rank_once(strategy, nodes, ranks_per_node, shard_ranks):
    world = nodes * ranks_per_node
    try:
        split = split_of(
            strategy, world_size=world, ranks_per_node=ranks_per_node, shard_ranks=shard_ranks
        )
    except ValueError:
        assert strategy == "hsdp"
        assert world % (shard_ranks or ranks_per_node) or (shard_ranks or ranks_per_node) == 1
        return
    assert split.shards * split.replicas == world
    for group in (split.shard_group, split.replica_group):
        members = [list(range(world))] if group is None else [*map(list, groups_of(group, world))]
        assert sorted(rank for each in members for rank in each) == list(range(world))


@pytest.mark.parametrize(
    ("strategy", "shards", "inside", "across"),
    [
        ("ddp", 1, RankGroup(size=1), None),
        ("fsdp", 8, None, RankGroup(size=1, stride=8)),
        ("hsdp", 4, RankGroup(size=4), RankGroup(size=2, stride=4)),
    ],
)
def test_on_two_nodes_of_four(strategy, shards, inside, across):
    split = split_of(strategy, world_size=8, ranks_per_node=4, shard_ranks=None)
    assert (split.shards, split.shard_group, split.replica_group) == (shards, inside, across)


@pytest.mark.parametrize(
    ("shard_ranks", "reason"),
    [
        (None, "HSDP in groups of one rank is DDP: `strategy: ddp`"),
        (1, "HSDP in groups of one rank is DDP: `strategy: ddp`"),
        (3, "4 ranks are no whole number of groups of 3"),
        (8, "4 ranks are no whole number of groups of 8"),
    ],
)
def test_groups_that_the_ranks_cannot_form_are_refused(shard_ranks, reason):
    with pytest.raises(ValueError, match=reason):
        split_of("hsdp", world_size=4, ranks_per_node=1, shard_ranks=shard_ranks)


def test_one_rank_alone_is_its_own_shard():
    for strategy in get_args(Strategy):
        split = split_of(strategy, world_size=1, ranks_per_node=1, shard_ranks=None)
        assert (split.shards, split.replicas) == (1, 1)
