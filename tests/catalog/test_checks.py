"""Proves catalog/checks.py: each kind of impossible value is found, and none in what is shipped."""

import re
from dataclasses import replace
from datetime import date

import pytest

from broadgauge.catalog.catalog import Catalog, load_catalog
from broadgauge.catalog.checks import check_catalog
from broadgauge.catalog.entries import Entry


def planted(kind: str, name: str, changes: dict[str, object]) -> Catalog:
    """The shipped catalog with one entry changed, as if by a file of the user's."""
    catalog = load_catalog()

    def changed(entry: Entry) -> Entry:
        if entry.name != name:
            return entry
        return type(entry).model_validate(merged(entry.model_dump(by_alias=True), changes))

    entries = tuple(changed(entry) for entry in catalog.entries(kind))
    places = {(kind, name): "mine.yaml:1:1"}
    return replace(catalog, **{kind: entries}, places=places)  # type: ignore[arg-type]


def merged(data: dict[str, object], changes: dict[str, object]) -> dict[str, object]:
    """`changes` over `data`, one level of mappings deep."""
    result = dict(data)
    for key, value in changes.items():
        old = result.get(key)
        is_both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = {**old, **value} if is_both else value  # type: ignore[dict-item]
    return result


def links(gbyte_per_s: float, **board: object) -> dict[str, object]:
    boards = [{"gpus": 8, "topology": "nvswitch", **board}]
    return {"nvlink": {"gbyte_per_s": gbyte_per_s, "links": 18, "boards": boards}}


def test_the_shipped_catalog_is_clean() -> None:
    assert [str(each) for each in check_catalog(load_catalog(), today=date(2026, 11, 22))] == []


@pytest.mark.parametrize(
    ("kind", "name", "changes", "words"),
    [
        ("gpus", "h100-sxm", {"source": None}, "no source"),
        ("gpus", "h100-sxm", {"source": "NVIDIA"}, "no source"),
        ("gpus", "h100-sxm", {"date": None}, "no date"),
        ("gpus", "h100-sxm", {"date": "1922"}, "date is 1922"),
        ("gpus", "h100-sxm", {"date": "2031-01"}, "date is 2031-01"),
        ("gpus", "h100-sxm", {"sources": {"bandwith": "x"}}, "names `bandwith`"),
        # Peaks: sparsity in one precision, in all, in the sheet of a GeForce
        ("gpus", "h100-sxm", {"peaks": {"fp8": 3958}}, "fp8 3958 beside fp16 989.5"),
        ("gpus", "h100-sxm", {"peaks": {"bf16": 1979}}, "bf16 1979 beside fp16 989.5"),
        ("gpus", "h100-sxm", {"peaks": {"tf32": 989}}, "tf32 989 beside fp16"),
        (
            "gpus",
            "h100-sxm",
            {"peaks": {"tf32": 989, "fp16": 1979, "bf16": 1979, "fp8": 3958}},
            "fp16 1979 over fp32 67 is 29.5",
        ),
        ("gpus", "a40", {"peaks": {"fp16": 299.4, "bf16": 299.4, "tf32": 149.7}}, "is 8.01"),
        ("gpus", "rtx-4090", {"peaks": {"fp16": 330.3, "bf16": 330.3}}, "accumulating in fp16"),
        ("gpus", "b200-sxm", {"peaks": {"fp4": 4500}}, "fp4 4500"),
        ("gpus", "v100-sxm-16gb", {"peaks": {"bf16": 125}}, "bf16: volta has no such hardware"),
        ("gpus", "a100-sxm-80gb", {"peaks": {"fp8": 624}}, "fp8: ampere has no such hardware"),
        ("gpus", "rtx-4090", {"products": {"reached_tflops": 330}}, "reach 2 of the peak"),
        ("gpus", "l4", {"products": {"reached_tflops": 7.1}}, "reach 0.0587 of the peak"),
        ("gpus", "t4", {"products": {"precision": "bf16"}}, "bf16, of which no peak is stated"),
        ("gpus", "l4", {"products": {"source": "me"}}, "`products`: no source"),
        ("gpus", "l4", {"products": {"date": "2031-01"}}, "`products`: their date is 2031-01"),
        ("gpus", "h100-sxm", {"sms": 66}, "more than 66 multiprocessors"),
        ("gpus", "h100-sxm", {"max_mhz": 198}, "a clock of 198 MHz"),
        ("gpus", "h100-sxm", {"tdp_watts": 7}, "a power of 7 W"),
        # Memory: TB/s, Gbit/s, another generation's
        ("gpus", "h100-sxm", {"memory_gbyte_per_s": 3.35}, "hopper parts have 1900 to 5000"),
        ("gpus", "h100-sxm", {"memory_gbyte_per_s": 26800}, "hopper parts have 1900 to 5000"),
        ("gpus", "l4", {"memory_gib": 192}, "are read in 687 ms"),
        # Links: both directions as one, a topology that contradicts itself
        ("gpus", "h100-sxm", links(900), "are these both directions"),
        ("gpus", "h100-sxm", links(700), "is 38.89 a link"),
        ("gpus", "h100-sxm", links(450, pair_links=6), "of a mesh or a bridge"),
        ("gpus", "h100-sxm", links(450, topology="mesh"), "of a mesh or a bridge"),
        ("gpus", "h100-sxm", links(450, topology="mesh", pair_links=19), "19 links a pair, of 18"),
        ("gpus", "h100-sxm", links(450, topology="bridge", pair_links=6), "joins two GPUs, not 8"),
        ("gpus", "h100-sxm", {"pcie_generation": 3}, "PCIe 3: no hopper GPU"),
        # Networks
        (
            "networks",
            "roce-400g",
            {"typical_ratio": {"high": 1.2}},
            "1.2 of nominal is above nominal",
        ),
        ("networks", "roce-400g", {"nominal_gbps": 3200}, "`nominal_gbps` is of one NIC"),
        ("networks", "vnic-100g", {"typical_gbyte_per_s": {"high": 100}}, "is above nominal"),
        ("networks", "roce-400g", {"latency_s": {"value": 5, "high": 9}}, "in seconds"),
        ("networks", "roce-400g", {"source": "fitted to my runs"}, "`fitted_on` does not say"),
        ("transports", "tcp", {"typical_ratio": {"high": 1.5}}, "above nominal"),
        (
            "transports",
            "tcp",
            {"rings": [{"up_to_gbps": 10, "value": 4, "low": 1, "high": 10}]},
            "a ring of 10 GB/s over 10 Gbit/s",
        ),
        # Nodes
        ("nodes", "p4d.24xlarge", {"node_gbps": 100}, "4 NICs of 100 are 400"),
        ("nodes", "p4d.24xlarge", {"node_gbps": 800}, "4 NICs of 100 are 400"),
        ("nodes", "p4d.24xlarge", {"gpu": "a1000-sxm"}, "no gpu `a1000-sxm`"),
        ("nodes", "p4d.24xlarge", {"networks": ["efa-401h"]}, "no network `efa-401h`"),
        ("nodes", "dgx-1v", {"nvlink_gpus": 72}, "NVLink of 72 GPUs"),
        (
            "nodes",
            "p3.16xlarge",
            {"networks": ["eth-1600g"], "node_gbps": 1600, "gpus_per_node": 1},
            "more than its PCIe carries",
        ),
        # Models
        ("models", "llama3-8b", {"layers": 30}, "7.594 × 10⁹ parameters follow from its shape"),
        ("models", "mixtral-8x7b", {"published_active_params": 46_700_000_000}, "active param"),
        ("models", "mixtral-8x7b", {"published_active_params": None}, "without `published_active"),
        # Storage and prices
        ("storage", "nvme-pcie4", {"read_gbyte_per_s": 7000}, "`read_gbyte_per_s` is 7000"),
        ("storage", "nvme-pcie4", {"read_gbyte_per_s": 1}, "are they swapped"),
        ("prices", "nebius-h100", {"date": None}, "a price without a date"),
        ("prices", "nebius-h100", {"node": "dgx-h100"}, "one of the two"),
        ("prices", "nebius-h100", {"gpu": "h1000"}, "no gpu `h1000`"),
        ("prices", "aws-p5.48xlarge", {"node": "p5.49xlarge"}, "no node `p5.49xlarge`"),
        ("prices", "nebius-h100", {"price_usd_per_hour": 295}, "295 USD for an hour of one GPU"),
        # Busbw
        ("busbw", "h100-8-8g", {"busbw_gbyte_per_s": 958}, "more than its links carry, 700"),
        ("busbw", "h100-8-ring", {"busbw_gbyte_per_s": 478}, "more than its links carry, 450"),
        ("busbw", "dgx1-roce", {"busbw_gbyte_per_s": 183}, "more than its links carry, 46.88"),
        ("busbw", "p5en-4x8", {"busbw_gbyte_per_s": 2916}, "more than its links carry, 516.7"),
        ("busbw", "net1-hdr", {"network": "hdrr"}, "no network `hdrr`"),
        # The predictor's own
        ("constants", "gemm_efficiency.ampere", {"value": 2}, "2 is not between"),
        ("fitted", "all", {"fitted_on": []}, "`fitted_on` does not say on what"),
        ("fitted", "all", {"constants": {"gemm_efficiency.ada": 3}}, "ada 3 is not between"),
        ("fitted", "all", {"constants": {"gemm_luck": 3}}, "no constant is named `gemm_luck`"),
        ("widenings", "fp8", {"fitted_on": []}, "`fitted_on` does not say on what"),
        ("widenings", "fp8", {"fitted_on": ["me"]}, "no ratio without `me`"),
    ],
)
def test_each_kind_of_impossible_value_is_found(
    kind: str, name: str, changes: dict[str, object], words: str
) -> None:
    catalog = planted(kind, name, changes)
    today = date(2026, 11, 22)
    found = [str(each) for each in check_catalog(catalog, only_own=True, today=today)]
    assert any(re.search(words, line) for line in found), found
    assert all(line.startswith(f"mine.yaml:1:1: {kind} `{name}`: ") for line in found), found


def test_a_name_of_two_shipped_entries_is_found_and_a_users_own_may_shadow_one() -> None:
    catalog = planted("gpus", "h200-sxm", {"aliases": ("h100",)})
    assert check_catalog(catalog) == ()
    (found,) = check_catalog(replace(catalog, places={}))
    assert str(found) == "gpus.yaml: gpus `h200-sxm`: `h100` is a name of `h100-sxm` too"
