"""Proves the order on SkyPilot: a cluster's launches in a row, interleaved, and never another's."""

from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifests.skypilot.experiments import experiment_of

from broadgauge.engine.plan import IN_TURN, make_plan
from broadgauge.manifests.skypilot.clusters import cluster_key, clusters_of
from broadgauge.platforms.skypilot.devices import skypilot_devices


@settings(max_examples=15, deadline=None)
@given(
    shapes=st.lists(
        st.sampled_from(["1x8", "2x2", "2x8", "4x8"]), min_size=1, max_size=4, unique=True
    ),
    launches=st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_each_cluster_is_held_once(shapes: list[str], launches: int, seed: int) -> None:
    experiment = experiment_of(shapes=tuple(shapes)).model_copy(
        update={"launches": launches, "seed": seed}
    )
    plan = make_plan(experiment, {"skypilot": skypilot_devices(experiment)})
    of_launches = [
        {cluster_key(plan.case(trial.case_key)) for trial in launch.trials}
        for launch in plan.launches
    ]
    assert all(len(keys) == 1 for keys in of_launches)
    in_turn = [next(iter(keys)) for keys, _ in groupby(of_launches)]
    assert in_turn == [cluster.key for cluster in clusters_of(plan.cases)]
    blocks: dict[int, set[object]] = {}
    for launch, keys in zip(plan.launches, of_launches, strict=True):
        blocks.setdefault(launch.block, set()).update(keys)
    assert all(len(keys) == 1 for keys in blocks.values()), "cases of two clusters are no pair"
    counts = [
        sum(trial.case_key == case.key for each in plan.launches for trial in each.trials)
        for case in plan.cases
    ]
    assert counts == [launches] * len(plan.cases)
    assert (IN_TURN in plan.notes) == (len(in_turn) > 1)
