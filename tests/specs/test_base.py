"""What holds for every part of an experiment file?"""

import pytest

from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.reading import read_experiment

TEXT = """\
name: booleans
networks:
  - {name: eth}
workloads:
  - kind: collectives
"""


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("launches=true", "launches"),
        ("networks.eth.mtu_bytes=false", "mtu_bytes"),
        ("networks.eth.rate_gbps=true", "rate_gbps"),
        ("cluster.cores_per_node=true", "cores_per_node"),
        ("limits.measure_s=true", "measure_s"),
        ("workloads.collectives.sizes=[1 KiB, true]", "sizes"),
    ],
)
def test_a_boolean_is_no_number(override: str, key: str) -> None:
    with pytest.raises(ExperimentError, match=f"`{key}` takes no `(true|false)`"):
        read_experiment(TEXT, "e.yaml", [override])


def test_a_boolean_is_taken_where_it_belongs() -> None:
    experiment: Experiment = read_experiment(
        TEXT, "e.yaml", ["workloads.collectives.check=false", "best_effort=true"]
    )
    assert experiment.best_effort
    assert experiment.workloads[0].model_dump()["check"] is False
