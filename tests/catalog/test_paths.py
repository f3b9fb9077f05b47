"""Proves catalog/paths.py and holds every figure to a source, to its bounds and to physics."""

from importlib import resources
from itertools import pairwise

import pytest
from pydantic import ValidationError

from broadgauge.catalog.gpus import known_gpus
from broadgauge.catalog.paths import PathCatalog, expect_path, path_catalog
from broadgauge.specs.text.yaml_source import parse_yaml

PUBLISHED = {("nvlink", "NVIDIA A100-SXM4-40GB", 2): 85.5, ("pcie", "NVIDIA A100 80GB", 2): 14.4}
"""Of catalog/articles.yaml, `all_reduce`, in busbw."""


def raw() -> dict:  # type: ignore[type-arg]
    text = resources.files("broadgauge.catalog").joinpath("paths.yaml").read_text()
    return parse_yaml(text, "paths.yaml").data


def test_gpus_are_those_of_the_other_catalog() -> None:
    names = {gpu.name for gpu in known_gpus()}
    catalog = path_catalog()
    assert {entry.gpu for entry in catalog.gpus} <= names
    assert {gpu for entry in catalog.expectations for gpu in entry.gpus} <= names


def test_bounds_lie_below_what_the_links_carry_for_every_number_of_gpus() -> None:
    catalog = path_catalog()
    for entry in catalog.expectations:
        for gpu in entry.gpus:
            for num_gpus in range(entry.num_gpus[0], entry.num_gpus[1] + 1):
                limit = catalog.limit_gbyte_per_s(entry, gpu, num_gpus)
                assert entry.low_gbyte_per_s < entry.high_gbyte_per_s <= limit


def test_a_low_bound_leaves_room_for_a_worse_day() -> None:
    for entry in path_catalog().expectations:
        lowest = min(figure.gbyte_per_s for figure in entry.figures)
        assert entry.low_gbyte_per_s <= 0.85 * lowest


@pytest.mark.parametrize(("key", "figure"), PUBLISHED.items())
def test_the_articles_figures_are_expected(key: tuple[str, str, int], figure: float) -> None:
    entry = expect_path(*key)
    assert entry is not None
    assert entry.low_gbyte_per_s <= figure <= entry.high_gbyte_per_s


@pytest.mark.parametrize(
    ("path", "device_name", "num_gpus"),
    [
        ("pcie", "NVIDIA H200", 2),
        ("nvlink", "NVIDIA H200", 16),
        ("nvlink", "NVIDIA L40S", 2),
        ("shm", "Tesla K80", 2),
        ("unknown", "NVIDIA H200", 2),
    ],
)
def test_of_what_nobody_knows_nothing_is_expected(
    path: str, device_name: str, num_gpus: int
) -> None:
    assert expect_path(path, device_name, num_gpus) is None


def test_faster_paths_are_expected_to_be_faster() -> None:
    two = [expect_path(path, "NVIDIA H200", 2) for path in ("nvlink", "shm", "sockets")]
    bounds = [(each.low_gbyte_per_s, each.high_gbyte_per_s) for each in two if each is not None]
    assert len(bounds) == 3
    assert all(faster[0] > slower[1] for faster, slower in pairwise(bounds))


def test_multicast_lets_busbw_exceed_what_a_gpu_sends() -> None:
    eight = expect_path("nvlink", "NVIDIA H200", 8)
    two = expect_path("nvlink", "NVIDIA H200", 2)
    assert eight is not None
    assert two is not None
    assert eight.busbw_ratio(8) == pytest.approx(14 / 9)
    assert two.busbw_ratio(2) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low_gbyte_per_s": 313}, "enclose the figures"),
        ({"high_gbyte_per_s": 320}, "enclose the figures"),
        ({"high_gbyte_per_s": 451}, "more than its links carry, 450"),
        ({"num_gpus": [1, 2]}, "at least 2"),
        ({"gpus": ["l40s"]}, "does not name its links"),
        ({"path": "carrier-pigeon"}, "nvlink"),
        ({"figures": []}, "at least 1"),
        ({"figures": [{"gbyte_per_s": 312, "source": "", "date": "2026"}]}, "at least 10"),
        ({"figures": [{"gbyte_per_s": 312, "source": "a source", "date": "?"}]}, "pattern"),
    ],
)
def test_a_wrong_entry_is_refused(change: dict[str, object], message: str) -> None:
    data = raw()
    data["expectations"][0] = {**data["expectations"][0], **change}
    with pytest.raises(ValidationError, match=message):
        PathCatalog.model_validate(data)
