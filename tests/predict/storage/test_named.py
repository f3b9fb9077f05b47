"""Proves predict/storage/named.py: a storage of the catalog, of a file, of a run, or none."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.predict.storage.making_storages import row
from tests.report.sample_run import Options, sample_run

from broadgauge.catalog.catalog import load_catalog
from broadgauge.predict.storage.named import measured_storages, storages_named
from broadgauge.results.model import RunSummary
from broadgauge.specs.errors import BroadgaugeError, InputError
from broadgauge.specs.storage import Storage

FILE = """
storage:
  - {name: nfs, read_gbyte_per_s: 2, write_gbyte_per_s: 1, read_stream_gbyte_per_s: 0.5,
     request_latency_s: 0.02, requests_at_once: 4, request_bytes: 8000000, is_durable: true}
  - {name: cached, read_gbyte_per_s: 1, write_gbyte_per_s: 1, is_write_back: true,
     upload_gbyte_per_s: 0.1, is_durable: true}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """Its first case measured a storage of its own, on two nodes."""
    plain = sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))
    first = plain.cases[0]
    rows = (
        row("raw", "read", cache="cold", gbyte_per_s=4.0),
        row("raw", "write", gbyte_per_s=2.0),
    )
    storage = Storage(name="nvme-pcie4", path="/mnt", is_durable=False)
    case = first.case.model_copy(update={"storage": storage})
    records = tuple(each.model_copy(update={"storage": rows}) for each in first.records)
    changed = replace(first, case=case, records=records)
    return replace(plain, cases=(changed, *plain.cases[1:]))


def test_a_name_is_the_catalogs() -> None:
    (found,) = storages_named("s3-mount", load_catalog())
    assert found.name == "nebius-s3-mount"
    assert found.read.of_streams(1).value == 0.3
    assert found.read.of_streams(8).value == pytest.approx(0.3 * 2.5)
    many = found.read.of_streams(8)
    assert many.high / many.low > found.read.of_streams(1).high / found.read.of_streams(1).low


def test_a_file_gives_all_of_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE, encoding="utf-8")
    nfs, cached = storages_named(str(path), load_catalog())
    assert nfs.read.of_streams(2).value == 1.0
    assert nfs.read.of_streams(9).value == 2.0
    assert (nfs.request_latency_s.value, nfs.requests_at_once, nfs.request_bytes) == (
        0.02,
        4,
        8_000_000,
    )
    assert cached.upload_gbyte_per_s is not None
    assert cached.upload_gbyte_per_s.value == 0.1


def test_a_run_gives_what_it_measured_and_before_the_catalog(run: RunSummary) -> None:
    assert list(measured_storages(run)) == ["nvme-pcie4"]
    (own,) = storages_named("nvme-pcie4", load_catalog(), run)
    (shipped,) = storages_named("nvme-pcie4", load_catalog())
    assert own.read.node_gbyte_per_s.value == pytest.approx(4.0 / run.cases[0].case.nodes)
    assert own.source.startswith(run.folder.name)
    assert not own.is_durable
    assert shipped.read.node_gbyte_per_s.value == 7.0
    (other,) = storages_named("nvme-pcie3", load_catalog(), run)
    assert other.name == "nvme-pcie3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpus: []", "has no storage"),
        (FILE.replace("read_stream_gbyte_per_s: 0.5", "read_stream_gbyte_per_s: 5"), "one stream"),
        (FILE.replace("is_write_back: true,", ""), "is of an `is_write_back` one"),
        (FILE.replace("request_latency_s", "request_latenci_s"), "request_latency_s"),
        (FILE.replace("read_gbyte_per_s: 1, ", ""), "nobody says what cached reads"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BroadgaugeError) as error:
        storages_named(str(path), load_catalog())
    assert words in f"{error.value} {error.value.hint}"


def test_what_is_not_there_is_said(repository: Path) -> None:
    with pytest.raises(InputError, match="can't be read: No such file"):
        storages_named("nothing.yaml", load_catalog())
    with pytest.raises(InputError, match="no storage `floppy`"):
        storages_named("floppy", load_catalog())
    with pytest.raises(InputError, match="no storage whose reads and writes were measured"):
        storages_named(str(repository / "tests/results/golden/schema-1"), load_catalog())
