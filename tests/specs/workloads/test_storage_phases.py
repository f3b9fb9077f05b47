"""Does each phase take its own keys, and is a combination that nobody can save refused?"""

import pytest

from broadgauge.specs.base import AS_STORED
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.workloads.workload import (
    BatchesWorkload,
    CheckpointWorkload,
    ModelLoadWorkload,
    RawFilesWorkload,
)

TEXT = """\
name: saves
cluster: {shapes: [1x2]}
storages: [{name: disk, path: /mnt}]
workloads:
  - {kind: storage, ENTRY}
"""


def read(entry: str) -> Experiment:
    return read_experiment(TEXT.replace("ENTRY", entry), "e.yaml")


def refused(entry: str) -> str:
    with pytest.raises(ExperimentError) as told:
        read(entry)
    return str(told.value)


def test_a_phase_that_is_not_named_is_raw() -> None:
    (workload,) = read("size: 1 MiB").workloads
    assert isinstance(workload, RawFilesWorkload)


def test_lists_are_axes_of_a_checkpoint() -> None:
    formats = ("torch", "safetensors", "distributed")
    entry = f"phase: checkpoint, name: save, format: [{', '.join(formats)}]"
    found = read(entry).workloads
    assert [each.name for each in found] == [f"save-format-{each}" for each in formats]
    states = [each.resolved_state_dict for each in found if isinstance(each, CheckpointWorkload)]
    assert states == ["full", "full", "sharded"]


def test_true_is_the_thread_and_stays_so_in_keys_of_cases() -> None:
    entry = "phase: checkpoint, name: save, asynchronous: [false, true, thread, process]"
    found = [each for each in read(entry).workloads if isinstance(each, CheckpointWorkload)]
    assert [each.asynchronous for each in found] == [None, "thread", "thread", "process"]
    stored = [each.model_dump(mode="json")["asynchronous"] for each in found]
    assert stored == [False, True, True, "process"]
    for workload in found:
        again = CheckpointWorkload.model_validate_json(
            workload.model_dump_json(), context=AS_STORED
        )
        assert again == workload


def test_of_the_state_three_times_the_weights_are_saved() -> None:
    model = "model: {layers: 1, hidden: 64, heads: 2}"
    for more, copies in (("", 3), (", optimizer_state: false", 1)):
        (workload,) = read(f"phase: checkpoint, {model}{more}").workloads
        assert isinstance(workload, CheckpointWorkload)
        assert workload.state_bytes == 4 * copies * workload.model.parameters
        assert workload.written_bytes(8) == workload.state_bytes * (workload.repetitions + 1)


def test_a_model_is_written_once_in_its_own_type() -> None:
    model = "model: {layers: 1, hidden: 64, heads: 2}"
    for more, size in (("", 2), (", dtype: float32", 4)):
        (workload,) = read(f"phase: load, {model}{more}").workloads
        assert isinstance(workload, ModelLoadWorkload)
        assert workload.written_bytes(8) == size * workload.model.parameters


@pytest.mark.parametrize(
    ("more", "is_mapped"),
    [("", True), (", format: torch", False), (", mapped: false", False)],
)
def test_a_file_is_mapped_where_its_library_does_it(more: str, is_mapped: bool) -> None:
    (workload,) = read(f"phase: load{more}").workloads
    assert isinstance(workload, ModelLoadWorkload)
    assert workload.is_mapped == is_mapped


def test_lists_are_axes_of_batches() -> None:
    found = read("phase: batches, source: [jsonl, webdataset], cache: [cold, warm]").workloads
    assert len(found) == 4
    assert {each.asked_cache for each in found} == {"cold", "warm"}


@pytest.mark.parametrize(
    ("more", "ranks", "told"),
    [
        ("samples: 64", 2, None),
        ("samples: 63", 2, "63 samples are no multiple of 2 ranks"),
        ("samples: 8, source: files", 8, None),
        ("samples: 8, source: webdataset, workers: 0", 8, None),
        ("samples: 8, source: webdataset, workers: 2", 8, "workers of all ranks (16)"),
    ],
)
def test_samples_that_ranks_can_not_share_are_not_run(
    more: str, ranks: int, told: str | None
) -> None:
    (workload,) = read(f"phase: batches, {more}").workloads
    assert isinstance(workload, BatchesWorkload)
    why = workload.why_not_split(ranks)
    assert why is told if told is None else why is not None and told in why


def test_an_epoch_takes_the_time_of_its_steps() -> None:
    (workload,) = read("phase: batches, samples: 90, step_time_s: 1 s, repetitions: 2").workloads
    assert isinstance(workload, BatchesWorkload)
    assert workload.idle_s(2) == 2 * 6
    assert workload.written_bytes(2) == workload.files_bytes(8) > 90 * workload.sample_size


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("phase: chekpoint", "`phase` can't be `chekpoint`"),
        ("phase: batches, source: tar", "`source` can't be `tar`"),
        ("phase: batches, sorce: files", "did you mean `source`?"),
        ("phase: batches, size: 1 GiB", "unknown key `size`"),
        ("phase: batches, samples: 0", "samples"),
        ("phase: batches, samples: 200_000, batch_per_rank: 1", "more than 100000 steps"),
        ("phase: [raw, checkpoint]", "`phase` takes one value, not a list"),
        ("phase: checkpoint, size: 1 GiB", "unknown key `size`"),
        ("phase: checkpoint, formatt: torch", "did you mean `format`?"),
        ("phase: checkpoint, model: {hiden: 8}", "did you mean `hidden`?"),
        ("phase: checkpoint, format: zip", "`format` can't be `zip`"),
        ("phase: checkpoint, state_dict: full", "never gathered"),
        ("phase: checkpoint, format: torch, asynchronous: true", "nothing in the background"),
        ("phase: checkpoint, format: torch, asynchronous: process", "nothing in the background"),
        ("phase: checkpoint, asynchronous: proces", "did you mean `process`?"),
        ("phase: checkpoint, format: safetensors, asynchronous: true", "nothing in the background"),
        (
            "phase: checkpoint, format: safetensors, strategy: ddp, state_dict: sharded",
            "no rank holds a shard",
        ),
        ("phase: load, optimizer_state: true", "unknown key `optimizer_state`"),
        ("phase: load, format: distributed, mapped: true", "each rank reads what it holds"),
        ("phase: load, format: distributed, readers: rank_0", "leave `readers` out"),
        ("phase: load, readers: rank0", "did you mean `rank_0`?"),
        (
            "phase: checkpoint, format: torch, strategy: ddp, state_dict: sharded",
            "no rank holds a shard",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(entry: str, told: str) -> None:
    message = refused(entry)
    assert told in message
    assert message.startswith("e.yaml:5:")
