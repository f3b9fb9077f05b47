"""Proves `run --max-cost`: a limit that nobody would keep is refused."""

import pytest
from tests.manifests.skypilot.experiments import experiment_of

from broadgauge.cli.run import _changed, _limit_of_cost
from broadgauge.running.experiments import load
from broadgauge.specs.errors import InputError


def test_a_run_without_clusters_takes_no_limit_of_cost() -> None:
    quickstart = load("quickstart", _limit_of_cost(5.0)).experiment
    with pytest.raises(InputError, match="this run has none"):
        _changed(quickstart, adds_reference=False, has_limit=True)
    assert _changed(quickstart, adds_reference=False, has_limit=False) is quickstart


def test_a_run_on_skypilot_has_the_limit() -> None:
    text = ("platform=skypilot", *_limit_of_cost(250.5))
    found = load("gemma-skypilot", text).experiment
    assert found.skypilot.max_cost_usd == 250.5
    assert _changed(experiment_of(), adds_reference=False, has_limit=True) == experiment_of()
