"""Proves specs/units.py: parse(print(x)) = x, and what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from broadgauge.specs.kubernetes.pod_volumes import Volume
from broadgauge.specs.units import (
    parse_byte_rate,
    parse_rate_gbps,
    parse_size_bytes,
    parse_time_s,
    show_count,
    show_parameters,
    show_rate,
    show_ratio,
    show_size,
    show_time,
)


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("200 Mbit/s", 0.2),
        ("1 Gbit/s", 1.0),
        ("10Gbps", 10.0),
        ("25 MB/s", 0.2),
        ("1 GiB/s", 8 * 2**30 / 1e9),
        ("1.5e2 kbit/s", 150e-6),
        ("0.4 Tbit/s", 400.0),
    ],
)
def test_rates(text: str, gbps: float) -> None:
    assert parse_rate_gbps(text) == pytest.approx(gbps)


@pytest.mark.parametrize("text", ["200", "Mbit/s", "200 Mb", "200 MB", "2 0 Mbit/s", "", "fast"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        parse_rate_gbps(text)


@pytest.mark.parametrize(
    ("text", "byte_per_s"),
    [
        ("500 MB/s", 500_000_000),
        ("4 Gbit/s", 500_000_000),
        ("0.3 GB/s", 300_000_000),
        ("1 MiB/s", 2**20),
        (125_000, 125_000),
    ],
)
def test_rates_of_bytes_are_whole(text: object, byte_per_s: int) -> None:
    parsed = parse_byte_rate(text)
    assert isinstance(parsed, int)
    assert parsed == byte_per_s


@pytest.mark.parametrize("text", ["500", "500 MB", "MB/s", "500 Mb/s", "", "fast"])
def test_what_is_no_rate_of_bytes(text: str) -> None:
    with pytest.raises(ValueError, match="rate of bytes"):
        parse_byte_rate(text)


def test_sizes_are_whole_bytes() -> None:
    assert parse_size_bytes("64 MiB") == 64 * 2**20
    assert parse_size_bytes("64 MB") == 64_000_000
    assert parse_size_bytes(7) == 7
    with pytest.raises(ValueError, match="whole number"):
        parse_size_bytes("0.3 B")


@given(st.floats(min_value=1e-6, max_value=1e4))
def test_a_shown_rate_is_read_back(gbps: float) -> None:
    parsed = parse_rate_gbps(show_rate(gbps, digits=6))
    assert isinstance(parsed, float)
    assert math.isclose(parsed, gbps, rel_tol=1e-5)


@given(st.integers(min_value=1, max_value=2**40))
def test_a_shown_size_is_read_back(size_bytes: int) -> None:
    parsed = parse_size_bytes(show_size(size_bytes, digits=15))
    assert parsed == size_bytes


@given(st.floats(min_value=1e-9, max_value=1e5))
def test_a_shown_time_is_read_back(seconds: float) -> None:
    parsed = parse_time_s(show_time(seconds, digits=6))
    assert isinstance(parsed, float)
    assert math.isclose(parsed, seconds, rel_tol=1e-5)


def test_what_is_shown() -> None:
    assert show_rate(0.2) == "200 Mbit/s"
    assert show_rate(0.9999) == "1 Gbit/s"
    assert show_time(0.0123) == "12.3 ms"
    assert show_time(180) == "3 min"
    assert show_size(64 * 2**20) == "64 MiB"
    assert show_size(64_000_000) == "64 MB"
    assert show_size(2 * 2**40) == "2 TiB"
    assert show_count(12_345) == "12.3 k"
    assert show_ratio(0.957) == "95.7 %"
    assert show_parameters(2_796_109_824) == "2.80B"
    assert show_parameters(124_439_808) == "124M"
    assert show_parameters(999_600_000) == "1.00B"
    assert show_parameters(65_536) == "65.5k"
    assert show_parameters(640) == "640"


def test_what_is_shown_in_the_unit_of_another() -> None:
    assert show_rate(1.474, like=0.2) == "1,470 Mbit/s"
    assert show_time(0.0000592, like=0.0025) == "0.0592 ms"
    assert show_time(48.29, like=135.1) == "0.805 min"
    assert show_time(0, like=0.002) == "0 ms"
    assert show_size(3 * 2**20, like=2**10) == "3,070 KiB"
    assert show_size(1_500_000, like=2000) == "1,500 KB"
    assert show_count(12_345, like=9800) == "12,345"
    assert show_count(9800, like=12_345) == "9.8 k"


@pytest.mark.parametrize(("text", "is_held"), [("8 TiB", True), ("2 EiB", False), ("0 B", False)])
def test_a_volume_may_hold_what_a_training_reads(text: str, is_held: bool) -> None:
    volume = {"name": "data", "mount": "/data", "size_bytes": text}
    if is_held:
        assert Volume.model_validate(volume).size_bytes == 8 * 2**40
    else:
        with pytest.raises(ValidationError):
            Volume.model_validate(volume)
