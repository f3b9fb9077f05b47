"""Is a storage what is said of it: like one of the catalog, or a disk throttled to rates?"""

from pathlib import Path

import pytest
from tests.engine.making import a_machine, devices_of

from broadgauge.catalog.references import known_storage, said_of_storage
from broadgauge.engine.plan import make_plan
from broadgauge.messages.codec import Decoder, encode
from broadgauge.messages.storage import StorageTask, Throttle
from broadgauge.running.experiments import load, load_text
from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import Plan
from broadgauge.specs.storages.storage import EmulatedDisk, Storage
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.workloads.tasks import task_of

TEXT = """\
name: x
platform: local
cluster: {shapes: [1x1], device: cpu}
storages:
  - {name: disk, path: /mnt, SAID}
workloads: [{kind: storage, size: 1 MiB}]
"""
MOUNT = "nebius-s3-mount"
RATES = EmulatedDisk(read=500_000_000, write=200_000_000)


def read(said: str, *flags: str) -> Experiment:
    experiment = load_text(TEXT.replace("SAID", said), Path("e.yaml"), flags).experiment
    assert read_experiment(dump_experiment(experiment), "stored.yaml") == experiment
    return experiment


def storages(said: str, *flags: str) -> tuple[Storage, ...]:
    return read(said, *flags).storages


def planned(said: str) -> Plan:
    return make_plan(read(said), devices_of(a_machine()))


def case_of(said: str) -> Case:
    (case,) = planned(said).cases
    return case


def throttle_of(said: str) -> Throttle | None:
    task = task_of(case_of(said))
    assert isinstance(task, StorageTask)
    assert Decoder(StorageTask)(encode(task)) == task
    return task.throttle


def test_like_fills_what_the_catalog_says() -> None:
    entry = next(entry for entry in known_storage() if entry.name == MOUNT)
    (storage,) = storages("like: nebius-s3-mount")
    assert storage.like == MOUNT
    assert (storage.read_gbyte_per_s, storage.write_gbyte_per_s, storage.is_durable) == (
        *(entry.read_gbyte_per_s, entry.write_gbyte_per_s, entry.is_durable),
    )
    assert storage.emulated is None
    assert storages("like: s3-mount") == (storage,)
    assert storages("like: nebius-s3-mount, is_durable: null") == (storage,)


def test_like_never_overrides_what_is_given() -> None:
    (storage,) = storages("like: nebius-s3-mount, read_gbyte_per_s: 2, is_durable: false")
    said = said_of_storage(MOUNT)
    assert (storage.read_gbyte_per_s, storage.is_durable) == (2, False)
    assert storage.write_gbyte_per_s == said["write_gbyte_per_s"]


@pytest.mark.parametrize(
    "said",
    [
        "emulated: {read: 500 MB/s, write: 200 MB/s}",
        "emulated: {read: 4 Gbit/s, write: 200000000}",
        "read_gbyte_per_s: 0.5, write_gbyte_per_s: 0.2, emulated: true",
        "read_gbyte_per_s: 0.5, emulated: {write: 200 MB/s}",
        "like: nebius-s3-mount, read_gbyte_per_s: 0.5, emulated: {write: 200 MB/s}",
    ],
)
def test_rates_are_given_or_those_that_are_said(said: str) -> None:
    (storage,) = storages(said)
    assert storage.emulated == RATES
    assert storage.expected_gbyte_per_s == (0.5, 0.2)
    assert throttle_of(said) == Throttle(
        storage="disk", read_byte_per_s=500_000_000, write_byte_per_s=200_000_000
    )


@pytest.mark.parametrize("entry", known_storage(), ids=lambda entry: entry.name)
def test_every_storage_of_the_catalog_can_be_asked_for(entry: Storage) -> None:
    (storage,) = storages(f"like: {entry.name}, emulated: true")
    assert storage.emulated is not None
    assert storage.emulated.read == round(1e9 * (entry.read_gbyte_per_s or 0))
    assert storage.emulated.write == round(1e9 * (entry.write_gbyte_per_s or 0))


def test_what_is_not_emulated_has_no_throttle() -> None:
    for said in ("emulated: false", "emulated: null", "like: nebius-s3-mount"):
        assert throttle_of(said) is None
    assert storages("like: s3-mount", "storages.disk.emulated=true")[0].emulated is not None


def test_lists_are_axes() -> None:
    both = storages("like: nebius-s3-mount, emulated: [false, true]")
    assert [each.emulated is None for each in both] == [True, False]
    several = storages("like: [nebius-s3-mount, sata-ssd], emulated: true")
    assert [each.like for each in several] == [MOUNT, "sata-ssd"]
    rates = storages("emulated: {read: [1 GB/s, 2 GB/s], write: 1 GB/s}")
    assert [each.emulated and each.emulated.read for each in rates] == [10**9, 2 * 10**9]


def test_an_experiment_may_emulate_the_storage_of_its_base(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(TEXT.replace("SAID", "like: nebius-s3-mount"))
    child = tmp_path / "child.yaml"
    child.write_text("extends: base.yaml\nstorages: [{name: disk, emulated: {read: 1 GB/s}}]\n")
    (storage,) = load(str(child), ()).experiment.storages
    assert storage.emulated == EmulatedDisk(read=10**9, write=10**8)


def test_a_throttled_disk_is_told_as_one() -> None:
    """And never as the storage whose rates it has."""
    (note,) = planned("like: nebius-s3-mount, emulated: true").notes
    assert note == "storage disk: a disk throttled to 300 MB/s read, 100 MB/s write"
    assert planned("like: nebius-s3-mount").notes == (f"storage disk: said to be like {MOUNT}",)
    assert planned("is_durable: true").notes == ()


def test_rates_are_part_of_a_case_and_where_they_are_from_is_not() -> None:
    plain = case_of("is_durable: true").key
    assert case_of("like: nebius-s3-mount").key == plain
    emulated = case_of("like: nebius-s3-mount, emulated: true").key
    assert emulated == case_of("emulated: {read: 300 MB/s, write: 100 MB/s}").key
    assert emulated not in (plain, case_of("like: sata-ssd, emulated: true").key)


def test_a_plan_keeps_what_the_storage_was() -> None:
    plan = planned("like: nebius-s3-mount, emulated: true")
    (case,) = Plan.model_validate_json(plan.model_dump_json()).cases
    assert case.storage == storages("like: nebius-s3-mount, emulated: true")[0]


@pytest.mark.parametrize(
    ("said", "column", "message"),
    [
        ("like: nebius-s3-mout", 30, "the catalog has no storage `nebius-s3-mout`"),
        ("like: nebius-s3-mout", 30, "did you mean `nebius-s3-mount`?"),
        ("like: 3", 30, "`like` takes a text, not `3`"),
        ("emulated: true", 30, "nothing says what `read` and `write` should be"),
        ("emulated: {}", 30, "nothing says what `read` and `write` should be"),
        ("emulated: {read: 1 GB/s}", 30, "nothing says what `write` should be"),
        ("emulated: {write: 1 GB/s}", 30, "or `like` a storage of the catalog"),
        ("emulated: {read: 1 GB/s, wrte: 1 GB/s}", 55, "did you mean `write`?"),
        ("emulated: fast", 30, "`emulated` takes a mapping of keys to values, not `fast`"),
        ("emulated: {read: 1 GB, write: 1 GB/s}", 41, "write it like `1 GB/s`"),
        ("emulated: {read: '1', write: 1 GB/s}", 41, "in quotes needs a unit"),
        ("emulated: {read: 1000, write: 1 GB/s}", 41, "takes a number of 125000 or more"),
        ("emulated: {read: true, write: 1 GB/s}", 41, "`read` takes no `true`"),
        ("read_gbyte_per_s: x, emulated: true", 30, "`read_gbyte_per_s` takes a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(said: str, column: int, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read(said)
    text = str(caught.value)
    assert message in text
    assert f"e.yaml:5:{column}: " in text


def test_without_the_catalog_a_name_is_refused() -> None:
    with pytest.raises(ExperimentError, match="looked up where an experiment file is read"):
        read_experiment(TEXT.replace("SAID", "like: nebius-s3-mount"), "e.yaml")
