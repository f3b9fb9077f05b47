"""Proves running/host_memory.py: the request follows the memory model, covers what was measured,
and says what nobody knows."""

from typing import Any

import pytest
from tests.manifests.requests import VNIC, experiment_of, request_of

from broadgauge.manifests.memory_need import MemoryNeed
from broadgauge.manifests.notes import notes_on
from broadgauge.manifests.pod_template import resources
from broadgauge.manifests.request import JobRequest
from broadgauge.probes.training.text import MAX_TEXT_BYTES
from broadgauge.running.host_memory import host_memory
from broadgauge.running.kinds.training import TEXT_BYTES
from broadgauge.specs.experiment import Experiment

GIB = 1 << 30
TRAIN = {"kind": "train", "model": {"layers": 8, "hidden": 2048, "heads": 16}}
COMMAND = {
    "kind": "command",
    "command": ["mine.py"],
    "metrics": [{"name": "loss", "regex": "(.*)"}],
}


def asked(
    workload: dict[str, Any],
    *,
    shape: str = "2x2",
    device: str = "cuda",
    face: Any = "pod",
    nics: int = 1,
    **settings: Any,
) -> JobRequest:
    network = {"name": "n", "kubernetes": face, "nics_per_node": nics}
    data = experiment_of(shape=shape, **settings).model_dump(mode="json", exclude_defaults=True)
    data |= {"workloads": [workload], "networks": [network]}
    experiment = Experiment.model_validate(
        data | {"cluster": {"shapes": [shape], "device": device}}
    )
    gpus = int(shape.partition("x")[2]) if device == "cuda" else 0
    plain = request_of(experiment, gpus_per_pod=gpus, memory_bytes=None)
    need = host_memory(experiment, plain.cases)
    said_bytes = experiment.kubernetes.memory_bytes
    return request_of(experiment, gpus_per_pod=gpus, memory_bytes=said_bytes, memory_need=need)


def part(need: MemoryNeed, words: str) -> int:
    return sum(each.size_bytes for each in need.parts if words in each.what)


@pytest.mark.parametrize(("shape", "measured_mib"), [("1x1", 1349), ("2x1", 1720)])
def test_what_was_measured_is_covered_and_not_twice(shape: str, measured_mib: int) -> None:
    """docs/measurements.md, "Memory of ranks on their node": one rank, and one over sockets."""
    need = asked(TRAIN, shape=shape).memory_need
    processes = sum(part(need, words) for words in ("processes", "page-locked", "agent"))
    assert 1.0 < processes / (measured_mib << 20) < 1.15


def test_it_is_a_request_without_a_limit_and_said_part_by_part() -> None:
    request = asked(TRAIN)
    total_bytes = request.memory_need.total_bytes
    assert total_bytes is not None
    found = resources(request)
    assert found["requests"]["memory"] == str(total_bytes)
    assert found["requests"]["cpu"] == "4"
    assert set(found["limits"]) == {"nvidia.com/gpu"}
    notes = "\n".join(notes_on(request))
    for each in request.memory_need.parts:
        assert each.words in notes
        assert each.source


def test_keys_of_the_experiment_win_and_too_little_is_said() -> None:
    request = asked(TRAIN, memory_bytes="4 GiB", cpus=3, shm_bytes="1 GiB")
    for each in resources(request).values():
        assert (each["memory"], each["cpu"]) == (str(4 * GIB), "3")
    assert "are less than" in "\n".join(notes_on(request))
    enough = asked(TRAIN, memory_bytes="400 GiB", cpus=3)
    assert "are less than" not in "\n".join(notes_on(enough))


def test_of_a_command_it_stays_unknown_and_none_is_asked_for() -> None:
    request = asked(COMMAND)
    assert request.memory_need.total_bytes is None
    assert "memory" not in resources(request)["requests"]
    [note] = [each for each in notes_on(request) if "no memory is asked for" in each]
    assert "`command`, a command of yours" in note
    assert "processes of 2 ranks" in note


def test_ranks_nics_models_and_shm_add_up() -> None:
    one, eight = asked(TRAIN, shape="2x1").memory_need, asked(TRAIN, shape="2x8").memory_need
    assert part(eight, "/dev/shm") == 8 * part(one, "/dev/shm") == 8 * GIB
    assert part(eight, "text") == 8 * part(one, "text")
    face = VNIC | {"ipam": {"kind": "none"}}
    nics = [part(asked(TRAIN, face=face, nics=n).memory_need, "page-locked") for n in (1, 2)]
    assert nics[1] / nics[0] == pytest.approx(2, rel=0.05)
    off = asked(TRAIN | {"communication_off": False}).memory_need
    assert part(off, "a copy") == 0
    # Parameters and both moments of Adam in fp32, of each of two ranks.
    params = (
        Experiment.model_validate(
            experiment_of().model_dump(mode="json", exclude_defaults=True) | {"workloads": [TRAIN]}
        )
        .workloads[0]
        .model.parameters
    )  # type: ignore[union-attr]
    assert part(asked(TRAIN).memory_need, "a copy") == pytest.approx(2 * 12 * params, rel=0.01)
    sharded = asked(TRAIN | {"strategy": "fsdp"}).memory_need
    assert part(sharded, "a copy") == pytest.approx(2 * 12 * params / 4, rel=0.01)


def test_on_cpus_the_model_is_in_the_nodes_memory() -> None:
    need = asked(TRAIN, device="cpu").memory_need
    assert part(need, "model, optimizer") > part(need, "a copy") > 0
    assert part(need, "/dev/shm") == 0  # Gloo sends over sockets
    given = asked(TRAIN, device="cpu", shm_bytes="2 GiB").memory_need
    assert part(given, "/dev/shm") == 2 * GIB
    small = {"kind": "collectives", "ops": ["all_reduce"], "sizes": ["1 MiB"]}
    large = small | {"sizes": ["1 MiB", "64 MiB"]}
    sizes = [part(asked(w, device="cpu").memory_need, "messages") for w in (small, large)]
    assert sizes[1] == 64 * sizes[0]


def test_the_largest_text_is_what_ranks_read() -> None:
    assert TEXT_BYTES == MAX_TEXT_BYTES
