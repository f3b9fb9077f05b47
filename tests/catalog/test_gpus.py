"""Proves catalog/gpus.py and holds every entry to a source and to physics."""

import re

import pytest

from broadgauge.catalog.gpus import find_gpu, known_gpus


@pytest.mark.parametrize(
    ("device_name", "entry_name"),
    [
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA A40", "a40"),
    ],
)
def test_names_that_nvml_gives(device_name: str, entry_name: str) -> None:
    entry = find_gpu(device_name)
    assert entry is not None
    assert entry.name == entry_name


@pytest.mark.parametrize("device_name", ["Tesla K80", "AMD Instinct MI300X", ""])
def test_an_unknown_gpu_has_no_peak(device_name: str) -> None:
    assert find_gpu(device_name) is None


def test_each_figure_has_a_source_a_date_and_a_possible_value() -> None:
    for entry in known_gpus():
        assert len(entry.source) > 10
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry.date)
        assert 1 < entry.bfloat16_tflops / entry.float32_tflops < 40
