"""Proves catalog/gpus.py and holds every entry to a source and to physics."""

import re

import pytest
from pydantic import ValidationError

from broadgauge.catalog.constants import known_constants
from broadgauge.catalog.gpus import (
    MEASURED_ON,
    Gpu,
    MatrixProducts,
    clock_ratio,
    find_gpu,
    find_gpu_named,
    known_gpus,
)
from broadgauge.specs.errors import InputError


@pytest.mark.parametrize(
    ("device_name", "entry_name"),
    [
        ("NVIDIA B200", "b200-sxm"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("A100-SXM4-40GB", "a100-sxm-40gb"),
        ("NVIDIA A100-SXM-64GB", "a100-sxm-64gb"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx-1080ti"),
        ("NVIDIA GeForce RTX 2080", "rtx-2080"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080ti"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Tesla V100-SXM2-16GB", "v100-sxm-16gb"),
        ("Tesla V100-SXM3-32GB", "v100-sxm3-32gb"),
        ("Tesla T4", "t4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA A40", "a40"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 3090 Ti", "rtx-3090ti"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("AMD Instinct MI300X", "mi300x"),
    ],
)
def test_names_that_nvml_gives(device_name: str, entry_name: str) -> None:
    entry = find_gpu(device_name)
    assert entry is not None
    assert entry.name == entry_name


@pytest.mark.parametrize(
    "device_name",
    [
        *("Tesla K80", "NVIDIA A1000", ""),
        *("NVIDIA H200 MIG 1g.18gb", "NVIDIA GeForce RTX 4090 Laptop GPU"),
        "NVIDIA GeForce RTX 4090 D",
    ],
)
def test_an_unknown_gpu_has_no_peak(device_name: str) -> None:
    assert find_gpu(device_name) is None


def own(name: str, *matches: str, aliases: tuple[str, ...] = ()) -> Gpu:
    """An entry of the user's."""
    change = {"name": name, "matches": matches, "aliases": aliases, "memory_gib": 999}
    return find_gpu_named("h200-sxm").model_copy(update=change)


@pytest.mark.parametrize(
    ("device_name", "entries", "found"),
    [
        ("NVIDIA Q7 Turbo", [own("q7-turbo")], "q7-turbo"),
        ("NVIDIA Q7 Turbo 80GB", [own("q7", "Q7")], "q7"),
        ("NVIDIA Q7", [own("ours", aliases=("q7",))], "ours"),
        ("NVIDIA H200", [own("our-h200", "H200")], "our-h200"),
        ("NVIDIA H200 NVL", [own("our-h200", "H200")], "h200-nvl"),
        ("NVIDIA Q7", [own("one", "Q7"), own("other", "Q7")], None),
        ("NVIDIA Q7 MIG 1g", [own("q7", "Q7")], None),
        ("NVIDIA Q7 MIG 1g", [own("q7-slice", "Q7", "MIG")], "q7-slice"),
    ],
)
def test_entries_of_the_users_are_found_by_what_the_driver_says(
    device_name: str, entries: list[Gpu], found: str | None
) -> None:
    entry = find_gpu(device_name, (*entries, *known_gpus()))
    assert (entry and entry.name) == found


def test_an_entry_that_replaces_a_shipped_one_is_found_as_that_is() -> None:
    mine = own("h200-sxm")
    others = [each for each in known_gpus() if each.name != "h200-sxm"]
    assert find_gpu("NVIDIA H200", (mine, *others)) is mine


@pytest.mark.parametrize(
    "name",
    [
        *("v100-sxm", "v100-sxm-16gb", "v100-sxm-32gb", "v100-sxm3-32gb", "a100-sxm"),
        *("a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm-80gb", "rtx-3090", "rtx-4090"),
        *("rtx-a5000", "rtx-6000-ada", "H100 SXM", "h200", "b200", "mi250x", "gh200"),
    ],
)
def test_the_names_that_tables_use_are_found(name: str) -> None:
    assert find_gpu_named(name).peak_flops("fp16") is not None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("A100-80GB-SXM", "a100-sxm-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("rtx3090", "rtx-3090"),
        ("GeForce RTX 4090", "rtx-4090"),
        ("Tesla V100-SXM2-32GB", "v100-sxm-32gb"),
        ("rtx_a5000", "rtx-a5000"),
    ],
)
def test_names_joined_or_ordered_otherwise(name: str, found: str) -> None:
    assert find_gpu_named(name).name == found


def test_a_wrong_name_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean `h100-sxm`"):
        find_gpu_named("h1000-sxm")


def test_peaks_are_asked_for_by_either_name_and_missing_ones_are_none() -> None:
    hopper, volta = find_gpu_named("h100-sxm"), find_gpu_named("v100-sxm")
    assert hopper.peak_flops("bfloat16") == hopper.peak_flops("bf16") == 989.5e12
    assert hopper.peak_flops("float32") == hopper.peak_flops("fp32") == 67e12
    assert volta.peak_flops("bf16") is None
    assert volta.peak_flops("tf32") is None


def test_who_shares_how_many_links() -> None:
    a100 = find_gpu_named("a100-sxm-80gb").nvlink
    assert a100 is not None
    assert a100.one_way_gbyte_per_s(2, 8) == 300
    assert a100.one_way_gbyte_per_s(2, 4) == pytest.approx(100)
    assert a100.one_way_gbyte_per_s(4, 4) == pytest.approx(300)
    bridged = find_gpu_named("rtx-3090").nvlink
    assert bridged is not None
    assert bridged.one_way_gbyte_per_s(2, 8) == pytest.approx(56.25)
    assert bridged.one_way_gbyte_per_s(3, 8) is None


def test_each_figure_has_a_source_and_a_date() -> None:
    for entry in known_gpus():
        assert entry.source is not None, entry.name
        assert len(entry.source) > 10
        assert entry.date is not None
        assert re.fullmatch(r"20\d\d(-\d\d){0,2}", entry.date)


def test_more_gpus_of_a_board_never_have_less_of_a_gpus_links() -> None:
    for gpu in known_gpus():
        if gpu.nvlink is None:
            continue
        for board in gpu.nvlink.boards:
            sizes = range(2, board.gpus + 1)
            rates = [gpu.nvlink.one_way_gbyte_per_s(size, board.gpus) for size in sizes]
            assert None not in rates, gpu.name
            known = [rate for rate in rates if rate is not None]
            assert sorted(known) == known, gpu.name
            assert known[-1] <= gpu.nvlink.gbyte_per_s, gpu.name


def test_what_a_board_reaches_is_beside_the_one_that_its_generation_was_measured_on() -> None:
    """GeForce clocks above its stated peak, 72 W hold half of it."""
    for name in ("l40s", "h100-sxm", "a100-sxm-80gb", "v100-sxm-16gb", "t4", "b200-sxm"):
        assert clock_ratio(find_gpu_named(name)) == 1
    l40s, rtx4090, l4 = (find_gpu_named(name) for name in ("l40s", "rtx-4090", "l4"))
    assert l40s.products is not None
    assert rtx4090.products is not None
    expected = (rtx4090.products.reached_tflops / 165.2) / (l40s.products.reached_tflops / 362.05)
    assert clock_ratio(rtx4090) == pytest.approx(expected, rel=1e-3)
    assert clock_ratio(l4) < 0.85
    assert clock_ratio(rtx4090) > 1.2
    assert clock_ratio(find_gpu_named("rtx-6000-ada")) == 1
    assert clock_ratio(find_gpu_named("mi300x")) == 1


def test_a_board_that_nobody_measured_is_like_the_others_of_its_kind() -> None:
    """So that a larger board of a kind is not predicted slower than its smaller one."""
    geforce = [clock_ratio(find_gpu_named(name)) for name in ("rtx-3080", "rtx-3090", "rtx-3080ti")]
    assert clock_ratio(find_gpu_named("rtx-3090ti")) == sorted(geforce)[1] > 1.2
    cards = [clock_ratio(find_gpu_named(name)) for name in ("a100-pcie-40gb", "rtx-a6000")]
    assert clock_ratio(find_gpu_named("a40")) == pytest.approx(sum(cards) / 2)
    assert max(cards) < 1
    assert clock_ratio(find_gpu_named("h800-sxm")) == 1


@pytest.mark.parametrize("name", ["mi300x", "p100-sxm"])
def test_where_no_board_was_measured_a_users_is_beside_any_gpus_efficiency(name: str) -> None:
    gpu = find_gpu_named(name)
    assert gpu.generation not in MEASURED_ON
    peak = gpu.peaks.fp16_tflops
    assert peak is not None
    products = MatrixProducts(
        precision="fp16", reached_tflops=peak / 2, runs=1, source="of a test", date="2026"
    )
    [usual] = [each.value for each in known_constants() if each.name == "gemm_efficiency"]
    measured = gpu.model_copy(update={"products": products})
    assert clock_ratio(measured) * usual == pytest.approx(0.5)


def test_a_users_entry_in_place_of_the_reference_is_beside_the_shipped_one() -> None:
    shipped = find_gpu_named("h100-sxm")
    assert shipped.products is not None
    half = shipped.products.model_copy(
        update={"reached_tflops": shipped.products.reached_tflops / 2}
    )
    assert clock_ratio(shipped.model_copy(update={"products": half})) == pytest.approx(0.5)


@pytest.mark.parametrize("date", ["yesterday", "26-01-12", "2026-1"])
def test_products_need_a_date_that_can_be_read(date: str) -> None:
    with pytest.raises(ValidationError, match="date"):
        MatrixProducts(precision="bf16", reached_tflops=100, runs=1, source="of a test", date=date)


def test_a_generations_efficiency_agrees_with_the_board_that_was_measured() -> None:
    priors = {constant.name: constant.value for constant in known_constants()}
    boards = {gpu.generation: gpu for gpu in known_gpus() if gpu.reached_ratio is not None}
    for generation, name in MEASURED_ON.items():
        reached = find_gpu_named(name).reached_ratio
        assert reached == pytest.approx(priors[f"gemm_efficiency.{generation}"], rel=0.1)
    assert set(boards) == set(MEASURED_ON)
