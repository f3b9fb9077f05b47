"""Is an entry that is like another one that one, but for what it says of its own?"""

import json
from pathlib import Path

import pytest

from broadgauge.catalog.catalog import Catalog, load_catalog, shipped_catalog
from broadgauge.catalog.gpus import clock_ratio, find_gpu
from broadgauge.specs.errors import ExperimentError

OURS = """
gpus:
  - name: ours
    like: h100-sxm
    memory_gib: 141
    memory_gbyte_per_s: 4800
    peaks: {bf16: 1200}
    price_usd_per_hour: 2.1
    source: the offer of 2026-11-02
    date: 2026-11-02
nodes:
  - {name: our-node, like: p5.48xlarge, gpu: ours, networks: ["roce-400g*8"]}
"""


def read(text: str, folder: Path) -> Catalog:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_catalog([path])


def test_what_is_not_said_is_the_other_ones(tmp_path: Path) -> None:
    known = read(OURS, tmp_path)
    ours, other = known.gpu("ours"), known.gpu("h100-sxm")
    assert (ours.memory_gib, ours.memory_gbyte_per_s) == (141, 4800)
    assert ours.peaks.bf16_tflops == 1200
    assert ours.peaks.fp8_tflops == other.peaks.fp8_tflops
    for field in ("generation", "form", "sms", "nvlink", "pcie_generation", "max_mhz"):
        assert getattr(ours, field) == getattr(other, field), field
    node, p5 = known.node("our-node"), known.node("p5.48xlarge")
    assert (node.gpu, node.gpus_per_node, node.vcpus) == ("ours", p5.gpus_per_node, p5.vcpus)
    assert node.networks == ("roce-400g*8",)


def test_names_sources_and_prices_are_its_own(tmp_path: Path) -> None:
    known = read(OURS, tmp_path)
    ours = known.gpu("ours")
    assert ours.like == "h100-sxm"
    assert (ours.aliases, ours.matches) == ((), ())
    assert ours.source == "the offer of 2026-11-02"
    assert find_gpu("NVIDIA H100 80GB HBM3", known.gpus) == known.gpu("h100-sxm")
    price = known.gpu_price("ours")
    assert price is not None
    assert price.price_usd_per_hour == 2.1
    assert price.price.date == "2026-11-02"
    assert known.where("prices", price.price).endswith("mine.yaml:8:5")
    silent = read(OURS.replace("    price_usd_per_hour: 2.1\n", ""), tmp_path)
    assert silent.gpu_price("ours") is None, "the other one's price is not its own"


def test_large_products_reach_the_same_share_of_another_peak(tmp_path: Path) -> None:
    known = read(OURS, tmp_path)
    assert known.gpu("h100-sxm").products is not None
    assert clock_ratio(known.gpu("ours")) == pytest.approx(clock_ratio(known.gpu("h100-sxm")))


def test_an_offer_that_names_one_half_means_both(tmp_path: Path) -> None:
    assert read(OURS, tmp_path).gpu("ours").peaks.fp16_tflops == 1200
    both = read(OURS.replace("{bf16: 1200}", "{bf16: 1200, fp16: 900}"), tmp_path).gpu("ours")
    assert (both.peaks.bf16_tflops, both.peaks.fp16_tflops) == (1200, 900)
    none = read(OURS.replace("{bf16: 1200}", "{fp8: 2400}"), tmp_path).gpu("ours")
    assert none.peaks.bf16_tflops == none.peaks.fp16_tflops == 989.5


def test_an_entry_may_be_like_one_above_it(tmp_path: Path) -> None:
    more = "  - {name: next, like: ours, memory_gib: 192}\nnodes:"
    known = read(OURS.replace("nodes:", more), tmp_path)
    assert known.gpu("next").memory_gbyte_per_s == 4800
    assert known.gpu_price("next") is None


def test_ones_own_price_of_a_shipped_gpu_is_taken(tmp_path: Path) -> None:
    text = "prices: [{name: mine, gpu: h100-sxm, price_usd_per_hour: 40, date: 2026-11}]"
    price = read(text, tmp_path).gpu_price("h100-sxm")
    usual = shipped_catalog().gpu_price("h100-sxm")
    assert price is not None
    assert usual is not None
    assert price.price_usd_per_hour == 40 > usual.price_usd_per_hour


MODELS = """
models:
  - {name: longer, like: llama3-8b, layers: 40, vocabulary: 64000}
  - {name: wider, like: llama3-8b, hidden: 5120, heads: 16}
  - {name: one-each, like: llama2-7b, heads: 64}
  - {name: own-width, like: gemma3-1b, hidden: 2304}
  - {name: of-file, like: ours/config.json, layers: 6}
"""


def test_a_model_takes_the_shape_and_no_published_count(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    file = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024}
    (tmp_path / "ours" / "config.json").write_text(json.dumps(file | {"vocab_size": 50257}))
    known = read(MODELS, tmp_path)
    longer, base = known.model("longer"), known.model("llama3-8b")
    assert (longer.layers, longer.vocabulary, longer.like) == (40, 64000, "llama3-8b")
    assert (longer.hidden, longer.kv_heads, longer.seq_len) == (4096, 8, base.seq_len)
    layer = (base.params - 2 * 128256 * 4096 - 4096) // 32
    assert longer.params == 40 * layer + 2 * 64000 * 4096 + 4096
    assert (longer.published_params, longer.aliases, longer.source) == (None, (), None)
    of_file = known.model("of-file")
    assert of_file.params == 124_439_808 - 6 * 7_087_872
    assert of_file.like == "ours"


def test_what_followed_from_other_figures_follows_from_a_models_own(tmp_path: Path) -> None:
    known = read(
        MODELS.replace("  - {name: of-file, like: ours/config.json, layers: 6}\n", ""), tmp_path
    )
    wider = known.model("wider")
    assert (wider.head_dim, wider.kv_heads) == (320, 8), "llama3-8b has 8 key-value heads itself"
    one_each = known.model("one-each")
    assert (one_each.kv_heads, one_each.head_dim) == (64, 64)
    assert known.model("own-width").head_dim == 256, "gemma3-1b says the width of its heads"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("llama3-8b", "lama3-8b", "mine.yaml:3:20: the catalog has no model `lama3-8b`"),
        ("llama2-7b", "nix.json", "mine.yaml:5:22: the model "),
        ("heads: 16", "heads: 12", "heads 12 does not divide by kv_heads 8"),
        ("like: gemma3-1b, ", "", "hint: take what you do not know from a known one: `like: llama"),
    ],
)
def test_mistakes_of_models_are_told_with_their_place(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in MODELS
    with pytest.raises(ExperimentError) as refused:
        read(MODELS.replace(old, new, 1), tmp_path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "h100-sxm",
            "h100-smx",
            "mine.yaml:4:5: the catalog has no gpu `h100-smx`\n  hint: did you mean `h100-sxm`?",
        ),
        ("p5.48xlarge", "p5.96xlarge", "mine.yaml:12:22: the catalog has no node `p5.96xlarge`"),
        ("memory_gib: 141", "memory_gib: 141 GB", "5:5: `memory_gib` takes a whole number, not"),
        ("memory_gib: 141", "memory_gib: yes", "5:5: `memory_gib` takes"),
        ("memory_gib: 141", "memory_gib: true", "5:5: `memory_gib` takes no `true`"),
        ("{bf16: 1200}", "{bf16: true}", "takes no `true`"),
        ("{bf16: 1200}", "1200", "`peaks` takes a mapping of keys to values, not `1200`"),
        ("{bf16: 1200}", "{bf16: fast}", "`peaks.bf16` takes a number, not `fast`"),
        ("{bf16: 1200}", "{bf61: 1200}", "unknown key `peaks.bf61`"),
        ("h100-sxm", "[a]", "mine.yaml:4:5: the catalog has no gpu `['a']`"),
        ("    like: h100-sxm\n", "", "hint: take what you do not know from a known one: `like:"),
    ],
)
def test_mistakes_are_told_with_place_value_and_hint(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in OURS
    with pytest.raises(ExperimentError) as refused:
        read(OURS.replace(old, new, 1), tmp_path)
    assert said in str(refused.value)
    assert all(problem.hint for problem in refused.value.problems)
