"""Proves specs/launching.py: what is asked for can be sent to another machine."""

from dataclasses import fields
from pathlib import Path

from pydantic import TypeAdapter

from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.networks.network import Network
from broadgauge.specs.time_limits import TimeLimits
from broadgauge.specs.workloads.workload import TrainWorkload


def test_a_request_survives_the_way_to_another_machine() -> None:
    case = Case(
        workload=TrainWorkload(kind="train", steps=8),
        network=Network(name="slow", rate_gbps=1.0),
        nodes=2,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={"MINE": "yes"},
        arm="baseline",
    )
    request = LaunchRequest(
        launch_id="b0.l0", cases=(case,), cores_per_node=2, limits=TimeLimits(measure_s=7)
    )
    adapter = TypeAdapter(LaunchRequest)
    assert adapter.validate_json(adapter.dump_json(request)) == request
    assert request.arm == "baseline"


def test_a_request_names_no_path_of_this_machine() -> None:
    values = [field.type for field in fields(LaunchRequest)]
    assert not [kind for kind in values if kind is Path or "Path" in str(kind)]
