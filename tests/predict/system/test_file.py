"""Is a system file read back as it was written, and a broken one refused in one message?"""

from pathlib import Path

import pytest
from tests.predict.making_systems import system

from broadgauge.predict.system.file import dump_system, parse_system, read_system
from broadgauge.specs.errors import InputError


def test_what_is_written_is_read_back() -> None:
    written = system(has_steps=True)
    assert parse_system(dump_system(written), "system.yaml") == written


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format: broadgauge system", "format: something", "system.yaml: no system file"),
        ("version: 1", "version: 7", "system.yaml:2:1: version 7 of a system file"),
        ("kind: cpu", "kind: tpu", "`device.kind`: input should be 'cpu' or 'cuda', not `tpu`"),
        ("median_s: 0.1,", "median_s: -1,", "input should be greater than 0, not `-1`"),
        ("median_s: 0.1,", "mean_s: 0.1,", "`compute.steps.0.time.median_s` is missing"),
        ("broadgauge: 0.1.0", "broadgauges: 0.1.0", "`broadgauge` is missing"),
        ("compute:", "\tcompute:", "not YAML"),
    ],
)
def test_a_broken_file_is_one_message_with_its_place(old: str, new: str, message: str) -> None:
    text = dump_system(system(has_steps=True)).replace(old, new, 1)
    with pytest.raises(InputError) as refused:
        parse_system(text, "system.yaml")
    assert message in refused.value.message
    assert refused.value.message.startswith("system.yaml")
    assert refused.value.hint is not None
    assert "\n" not in refused.value.message


def test_a_torn_file_is_refused() -> None:
    text = dump_system(system())
    with pytest.raises(InputError, match=r"system\.yaml"):
        parse_system(text[: len(text) // 2], "system.yaml")


@pytest.mark.parametrize("name", ["nothing.yaml", ".", "binary"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError) as refused:
        read_system(tmp_path / name)
    assert "broadgauge calibrate" in (refused.value.hint or "")
