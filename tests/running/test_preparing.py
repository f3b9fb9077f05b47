"""Is what an experiment needs looked for before anything runs?"""

import pytest
from tests.engine.making import a_machine

from broadgauge.running import traces_extra
from broadgauge.running.experiments import load
from broadgauge.running.preparing import prepare
from broadgauge.specs.cost import Cost
from broadgauge.specs.errors import InputError


@pytest.mark.parametrize(
    ("node", "said"),
    [("p5.49xlarge", "no node `p5.49xlarge`"), ("r760xa-a40", "no price of r760xa-a40 is known")],
)
def test_a_node_without_a_price_is_refused_before_anything_runs(node: str, said: str) -> None:
    loaded = load("quickstart", overrides=(f"cost.node={node}",))
    with pytest.raises(InputError, match=said) as refused:
        prepare(loaded, machine=a_machine())
    assert refused.value.hint


def test_the_plan_keeps_what_the_experiment_says_of_cost() -> None:
    loaded = load("quickstart", overrides=("cost={usd_per_node_hour: 2, tokens: 300B}",))
    cost = prepare(loaded, machine=a_machine()).plan.cost
    assert cost == Cost(usd_per_node_hour=2.0, tokens=300_000_000_000)
    assert prepare(load("quickstart", overrides=()), machine=a_machine()).plan.cost is None


def test_a_run_that_traces_needs_what_reads_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be found missing when all is measured; what traces nothing does without."""
    monkeypatch.setattr(traces_extra, "find_spec", lambda name: None)
    traced = load("quickstart", overrides=("workloads=[{kind: train, trace: {steps: 2}}]",))
    with pytest.raises(InputError, match="msgspec, which is not installed") as refused:
        prepare(traced, machine=a_machine())
    assert refused.value.hint == "pip install 'broadgauge[traces]', or leave `trace` out"
    assert prepare(load("quickstart", overrides=()), machine=a_machine()).plan.cases
