"""Is a system file read back as it was written, and a broken one refused in one message?"""

import math
import statistics
from pathlib import Path

import pytest
from tests.predict.making_systems import system

from broadgauge.predict.system.file import dump_system, parse_system, read_system
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import Timing


def test_what_is_written_is_read_back() -> None:
    written = system(has_steps=True)
    assert parse_system(dump_system(written), "system.yaml") == written


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format: broadgauge system", "format: something", "system.yaml: no system file"),
        ("version: 1", "version: 7", "system.yaml:2:1: version 7 of a system file"),
        ("kind: cpu", "kind: tpu", "`device.kind` can't be `tpu`"),
        ("median_s: 0.1,", "median_s: -1,", "median_s` takes a number above 0, not `-1`"),
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


@pytest.mark.parametrize("median_s", [0.0979, 0.1031])
def test_a_median_outside_of_its_quartiles_is_refused(median_s: float) -> None:
    lines = dump_system(system(has_steps=True)).splitlines()
    line = next(i for i, text in enumerate(lines) if "median_s: 0.1," in text)
    lines[line] = lines[line].replace("median_s: 0.1,", f"median_s: {median_s},")
    with pytest.raises(InputError) as refused:
        parse_system("\n".join(lines), "system.yaml")
    assert refused.value.message == (
        f"system.yaml:{line + 1}:5: `compute.steps.0.time`: the median lies outside of its "
        f"quartiles: low_s 0.098, median_s {median_s}, high_s 0.103"
    )
    assert "broadgauge calibrate" in (refused.value.hint or "")


def test_quartiles_of_all_but_equal_times_are_taken_as_they_were_rounded() -> None:
    time_s = 0.7802388264143257
    times_s = [time_s, math.nextafter(time_s, 1.0)]
    low_s, median_s, high_s = statistics.quantiles(times_s, n=4, method="inclusive")
    assert median_s > high_s, "statistics.quantiles rounds"
    assert Timing(median_s=median_s, low_s=low_s, high_s=high_s, repetitions=2).high_s == high_s


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
