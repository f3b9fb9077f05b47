"""Is a data set that Hugging Face's library has saved prepared as its rows are?"""

from pathlib import Path

import pytest
from tests.tokenizing.reading import samples_in

from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.preparing import prepare
from broadgauge.tokenizing.request import PrepareRequest

pytestmark = pytest.mark.measuring


def test_rows_are_samples_and_found_again_by_content(tmp_path: Path) -> None:
    import datasets  # which takes as long as torch

    rows = [{"text": "one", "id": 1}, {"text": "two", "id": 2}]
    for name in ("saved", "copy"):
        datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)}).save_to_disk(
            tmp_path / name
        )
    made = prepare(PrepareRequest(source=str(tmp_path / "saved"), split="test"))
    assert [bytes(sample) for sample in samples_in(made.folder)] == [b"one", b"two"]
    assert made.described.source.startswith(f"{tmp_path / 'saved'} test, `text` of 2 records")
    assert prepare(PrepareRequest(source=str(tmp_path / "copy"), split="test")).was_there
    with pytest.raises(InputError, match="saved, row 0: `id` is no text, but int '1'"):
        prepare(PrepareRequest(source=str(tmp_path / "saved"), split="test", field="id"))
