"""Is a file of storages' figures read as meant, and refused with place, value and hint?"""

import pytest

from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.reading_as import read_as
from broadgauge.specs.storage_table import StoragePhase, StorageTable

TEXT = """\
storages:
  - {name: nfs, is_durable: true, batch_loading_s: 4.3, model_loading_s: 30 s, checkpoint_stall_s: 6 min}
  - {name: cached, store: bucket, is_durable: true, model_loading_s: 104 s, checkpoint_stall_s: 212 s}
job: {samples: 100_000, loads: 2, saves: 24, length_s: 24 h, checkpoint_bytes: 10 GB, kept_checkpoints: 3}
now: {batch_loading: nfs}
"""  # noqa: E501


def test_a_file_is_read() -> None:
    table = read_as(StorageTable, TEXT, "s.yaml", ["job.saves=12", "storages.nfs.is_durable=false"])
    nfs, cached = table.storages
    assert (nfs.kept_in, cached.kept_in) == ("nfs", "bucket")
    assert [nfs.phase_s(phase) for phase in StoragePhase] == [4.3, 30, 360]
    assert cached.phase_s(StoragePhase.BATCH_LOADING) is None
    assert [table.job.times(phase) for phase in StoragePhase] == [1000, 2, 12]
    assert table.job.bytes_of(StoragePhase.CHECKPOINT_SAVING) == 30 * 10**9
    assert table.job.bytes_of(StoragePhase.MODEL_LOADING) is None
    assert not nfs.is_durable
    assert table.now.names() == {StoragePhase.BATCH_LOADING: "nfs"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "model_loading_s: 30 s",
            "model_loadng_s: 30 s",
            "s.yaml:2:57: unknown key `model_loadng_s`\n  hint: did you mean `model_loading_s`?",
        ),
        ("checkpoint_stall_s: 6 min", "checkpoint_stall_s: 6 hrs", "`hrs` is no unit of a time"),
        ("name: cached", "name: nfs", "s.yaml:3:6: two storages are named `nfs`"),
        (
            "batch_loading: nfs",
            "batch_loading: nsf",
            "s.yaml:5:7: no storage is named `nsf`\n  hint: did you mean `nfs`?",
        ),
        ("saves: 24", "saves: -1", "s.yaml:4:35: `saves`"),
        (TEXT, "[]", "the file is a mapping"),
        (TEXT, "storages: []", "`storages` takes a list of 1 or more"),
        ("is_durable: true, b", "b", "`is_durable` is missing"),
        ("4.3", ".nan", "s.yaml:2:52: `.nan` is no number"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(old: str, new: str, said: str) -> None:
    with pytest.raises(ExperimentError) as raised:
        read_as(StorageTable, TEXT.replace(old, new, 1), "s.yaml")
    assert said in str(raised.value)
