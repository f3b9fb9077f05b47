"""What a user's own catalog says is what predictions use."""

from pathlib import Path

import pytest
from tests.predict.making_cases import case

from broadgauge.catalog.catalog import Catalog, load_catalog, shipped_catalog
from broadgauge.cli.main import main
from broadgauge.predict.asking.combinations import expand
from broadgauge.predict.asking.from_catalog import fabric_named
from broadgauge.predict.calibration.factors import Observation, fit, step_s
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.link_rates import hop_s, node_rate, prior_spread_ratio
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.predictor import predict
from broadgauge.predict.tables.table import read_table

NETWORKS = """
networks:
  - {name: narrow, transport: virtio, nominal_gbps: 100, source: us, date: 2026-01,
     typical_gbyte_per_s: {value: 2.1, low: 2.0, high: 2.2}}
  - {name: wide, transport: virtio, nominal_gbps: 100, nics: 2, source: us, date: 2026-01,
     typical_gbyte_per_s: {value: 4.5, low: 2.0, high: 5.0},
     latency_s: {value: 0.001, low: 0.001, high: 0.002}}
  - {name: ratio, transport: roce, nominal_gbps: 80, source: us, date: 2026-01,
     typical_ratio: {value: 0.3, low: 0.2, high: 0.8}}
  - {name: ring, transport: tcp, nominal_gbps: 100, source: us, date: 2026-01,
     ring_gbyte_per_s: {value: 2.5, low: 2.0, high: 4.5}}
  - {name: silent, transport: virtio, nominal_gbps: 100, source: us, date: 2026-01}
"""
MODEL = """
models:
  - {name: our-model, layers: 24, hidden: 2048, heads: 16, kv_heads: 8, ffn_hidden: 5632,
     gated_mlp: true, vocabulary: 64000, seq_len: 4096, source: our own code, date: 2026-01}
"""
GPUS = """
gpus:
  - {name: our-gpu, generation: hopper, form: sxm, sms: 132, memory_gib: 160,
     memory_gbyte_per_s: 6700, pcie_generation: 5, tdp_watts: 700, max_mhz: 1980,
     source: us, date: 2026-01,
     nvlink: {gbyte_per_s: 450, links: 18, boards: [{gpus: 8, topology: nvswitch}]},
     peaks: {fp32: 120, tf32: 989, fp16: 1979, bf16: 1979}}
  - {name: h100-sxm, generation: hopper, form: sxm, sms: 132, memory_gib: 40,
     memory_gbyte_per_s: 1000, pcie_generation: 5, tdp_watts: 700, max_mhz: 1980,
     source: us, date: 2026-01,
     nvlink: {gbyte_per_s: 450, links: 18, boards: [{gpus: 8, topology: nvswitch}]},
     peaks: {fp32: 60, tf32: 400, fp16: 400, bf16: 400}}
nodes:
  - {name: our-node, provider: us, gpu: our-gpu, gpus_per_node: 8, networks: [roce-400g],
     source: us, date: 2026-01}
"""


def catalog_of(text: str, folder: Path) -> Catalog:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_catalog([path])


@pytest.mark.parametrize(
    ("name", "whole_gbyte_per_s", "by_rank_gbyte_per_s", "spread_ratio"),
    [
        ("narrow", 2.1, 2.1, 1.049),
        ("wide", 9.0, 9.0, 2.236),  # two NICs, of which the hypervisor may let one work
        ("ratio", 3.0, 3.0, 2.0),
        ("ring", 2.5, 10.0, 1.5),  # eight communicators fill the NIC to 0.8 of nominal
    ],
)
def test_a_networks_own_rate_is_used_with_its_range(
    tmp_path: Path,
    name: str,
    whole_gbyte_per_s: float,
    by_rank_gbyte_per_s: float,
    spread_ratio: float,
) -> None:
    fabric = fabric_named(name, catalog_of(NETWORKS, tmp_path))
    columns = columns_of([case(fabric=fabric, strategy="hsdp")])
    one, each = group_of("data", columns), group_of("replica", columns)
    assert node_rate(one, columns)[0] == pytest.approx(whole_gbyte_per_s * 1e9)
    assert node_rate(each, columns)[0] == pytest.approx(by_rank_gbyte_per_s * 1e9)
    assert prior_spread_ratio(columns)[0] == pytest.approx(spread_ratio, rel=1e-3)


def test_a_networks_own_latency_is_used(tmp_path: Path) -> None:
    known = catalog_of(NETWORKS, tmp_path)
    fabrics = [fabric_named(name, known) for name in ("wide", "narrow")]
    told_s, usual_s = hop_s(columns_of([case(fabric=fabric) for fabric in fabrics]))
    assert told_s == 0.001
    assert usual_s == 70e-6


def test_a_narrow_range_gives_a_narrow_interval(tmp_path: Path) -> None:
    known = catalog_of(NETWORKS, tmp_path)
    fabrics = [fabric_named(name, known) for name in ("narrow", "silent")]
    told, guessed = (
        each.step_time_s for each in predict([case(fabric=fabric) for fabric in fabrics])
    )
    assert told.value < guessed.value
    assert told.high / told.low < guessed.high / guessed.low / 2


def test_fitted_rdma_is_for_entries_that_state_nothing(tmp_path: Path) -> None:
    fabric = fabric_named("ratio", catalog_of(NETWORKS, tmp_path))
    measured = fabric_named("ratio=3GB/s", catalog_of(NETWORKS, tmp_path))
    told, same = predict([case(fabric=fabric), case(fabric=measured)])
    assert told.step_time_s.value == pytest.approx(same.step_time_s.value)


def test_shipped_networks_are_priced_as_their_transport_or_as_they_say() -> None:
    """Whatever networks.yaml will say of one: no figure of it is lost on the way."""
    known = shipped_catalog()
    for network in known.networks:
        fabric = fabric_named(network.name, known)
        prior = next(each for each in known.transports if each.name == network.transport)
        says = (network.typical_ratio, network.typical_gbyte_per_s)
        is_prior = says == (prior.typical_ratio, prior.typical_gbyte_per_s)
        assert (fabric.stated_node_gbyte_per_s is None) == is_prior, network.name
        hop = hop_s(columns_of([case(fabric=fabric)]))[0]
        assert hop == network.latency_s.value, network.name


LLAMA = {"model": ["llama3-8b"], "strategy": ["fsdp"], "recompute": ["none"]}


def test_a_gpu_of_ones_own_is_predicted_with_its_own_facts(tmp_path: Path) -> None:
    known = catalog_of(GPUS, tmp_path)
    theirs = expand({**LLAMA, "node": ["our-node"], "nodes": [1, 2]}, known)
    shipped = expand(
        {**LLAMA, "gpu": ["h100-sxm"], "nodes": [1, 2], "network": ["roce-400g"]},
        shipped_catalog(),
    )
    own, usual = predict(theirs.cases), predict(shipped.cases)
    assert [each.case.gpu for each in own] == ["our-gpu"] * 2
    assert own[0].memory.capacity_bytes > 1.9 * usual[0].memory.capacity_bytes
    assert 0.5 < own[0].step_time_s.value / usual[0].step_time_s.value < 0.75


def test_an_entry_that_replaces_a_shipped_gpu_is_used_and_stays_with_its_case(
    tmp_path: Path,
) -> None:
    properties = {**LLAMA, "gpu": ["h100-sxm"]}
    own = expand(properties, catalog_of(GPUS, tmp_path)).cases[0]
    usual = expand(properties, shipped_catalog()).cases[0]
    assert usual.own_gpu is None
    slow, fast = predict([own, usual])
    assert slow.step_time_s.value > 2 * fast.step_time_s.value
    assert predict([usual, own])[0].step_time_s == fast.step_time_s


def test_measured_steps_of_ones_own_gpu_calibrate_it(tmp_path: Path) -> None:
    known = catalog_of(GPUS, tmp_path)
    case_ = expand({**LLAMA, "gpu": ["our-gpu"], "framework": ["torch"]}, known).cases[0]
    before_s = float(step_s([case_], default_knowledge())[0])
    model = case_.model
    data = (
        "model,params,layers,hidden,vocabulary,seq_len,global_batch,micro_batch,dtype,strategy,"
        "gpu,gpus_per_node,framework,recompute,flash_attention,step_time_s\n"
        f"m,{model.params:.0f},{model.layers},{model.hidden},{model.vocabulary},"
        f"{case_.seq_len},{case_.global_batch:g},{case_.micro_batch:g},bf16,fsdp,"
        f"our-gpu,8,torch,none,yes,{1.5 * before_s}\n"
    )
    assert not read_table(data.encode(), "ours.csv").rows
    rows = read_table(data.encode(), "ours.csv", known.gpu).rows
    found = fit(
        [Observation(case=r.case, step_time_s=r.step_time_s) for r in rows], default_knowledge()
    )
    assert float(step_s([case_], found)[0]) > 1.3 * before_s


def test_the_command_takes_a_gpu_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog_of(GPUS, tmp_path)
    words = ("predict", "--model", "llama3-8b", "--node", "our-node", "--nodes", "2", "--explain")
    page, trace = str(tmp_path / "a.html"), str(tmp_path / "a.json")
    files = ("--catalog", str(tmp_path / "mine.yaml"), "--html", page, "--trace", trace)
    assert main((*words, *files)) == 0
    assert "our-gpu" in capsys.readouterr().out


VIRTIO = {**LLAMA, "gpu": ["h100-sxm"], "nodes": [4], "framework": ["torch"]}


def measured_rows(case_: TrainingCase, step_time_s: float, rate: str) -> bytes:
    """As a user writes down a step: the network by its transport and nominal rate."""
    model = case_.model
    return (
        "params,layers,hidden,vocabulary,seq_len,global_batch,micro_batch,dtype,strategy,gpu,nodes,"
        "gpus_per_node,framework,recompute,flash_attention,transport,node_gbps,"
        "measured_node_gbyte_per_s,step_time_s\n"
        f"{model.params:.0f},{model.layers},{model.hidden},{model.vocabulary},{case_.seq_len},"
        f"{case_.global_batch:g},{case_.micro_batch:g},bf16,fsdp,h100-sxm,4,8,torch,none,yes,"
        f"virtio,100,{rate},{step_time_s}\n"
    ).encode()


def calibrated(data: bytes) -> Knowledge:
    rows = read_table(data, "ours.csv").rows
    observed = [Observation(case=row.case, step_time_s=row.step_time_s) for row in rows]
    return fit(observed, default_knowledge())


@pytest.mark.parametrize("step_time_s", [25.0, 40.0, 65.0])
def test_a_measured_step_moves_the_rate_of_a_network_of_that_name(step_time_s: float) -> None:
    (asked,) = expand({**VIRTIO, "network": ["vnic-100g"]}, shipped_catalog()).cases
    found = calibrated(measured_rows(asked, step_time_s, ""))
    guessed, told = (predict([asked], known)[0].step_time_s for known in (None, found))
    assert guessed.value == pytest.approx(55, rel=0.1)
    assert told.value == pytest.approx(step_time_s, rel=0.05)
    assert told.high / told.low < guessed.high / guessed.low / 2


def test_a_rate_that_came_with_a_step_is_that_networks_rate() -> None:
    properties = {**VIRTIO, "network": ["vnic-100g", "vnic-100g=3.5GB/s", "vnic-200g"]}
    silent, said, other = expand(properties, shipped_catalog()).cases
    as_said_s = float(step_s([said], default_knowledge())[0])
    found = calibrated(measured_rows(silent, as_said_s, "3.5"))
    silent_s, said_s = step_s([silent, said], found)
    assert silent_s == pytest.approx(as_said_s, rel=0.03)
    assert said_s == pytest.approx(as_said_s, rel=0.03)
    usual_s, after_s = (float(step_s([other], k)[0]) for k in (default_knowledge(), found))
    assert after_s == pytest.approx(usual_s, rel=0.03)


def test_a_step_on_the_priors_rate_moves_no_rate_that_is_known(tmp_path: Path) -> None:
    known = catalog_of(NETWORKS, tmp_path)
    properties = {**VIRTIO, "network": ["vnic-100g", "vnic-100g=3GB/s", "narrow"]}
    silent, *sure = expand(properties, known).cases
    found = calibrated(measured_rows(silent, 20.0, ""))
    assert step_s(sure, found) == pytest.approx(step_s(sure, default_knowledge()), rel=0.03)


def test_a_gpu_like_a_known_one_is_predicted_with_its_own_memory_rate_and_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A buyer's offer: four figures, and the rest of a GPU that is known."""
    like = "{name: ours, like: h100-sxm, memory_gib: 160, peaks: {bf16: 1979}, PRICE}"
    known = catalog_of(f"gpus: [{like.replace('PRICE', 'price_usd_per_hour: 4')}]", tmp_path)
    (own,) = expand({**LLAMA, "gpu": ["ours"]}, known).cases
    (usual,) = expand({**LLAMA, "gpu": ["h100-sxm"]}, known).cases
    assert own.gpus_per_node == usual.gpus_per_node == 8
    fast, slow = predict([own, usual])
    assert fast.memory.capacity_bytes == 2 * slow.memory.capacity_bytes
    assert 0.4 < fast.step_time_s.value / slow.step_time_s.value < 0.8
    words = ("predict", "--model", "llama3-8b", "--gpu", "ours", "--tokens", "1T")
    assert main((*words, "--catalog", str(tmp_path / "mine.yaml"))) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "$4 for a GPU (ours) and hour (ours, no date)" in told
    catalog_of(f"gpus: [{like.replace(', PRICE', '')}]", tmp_path)
    assert main((*words, "--catalog", str(tmp_path / "mine.yaml"))) == 0
    assert "cost unknown: --usd-per-gpu-hour tells the price" in capsys.readouterr().out


def test_a_model_that_was_never_published_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(MODEL)
    assert main(["catalog", "check", str(own)]) == 0
    assert (
        main(["predict", "--model", "our-model", "--gpu", "h100-sxm", "--catalog", str(own)]) == 0
    )
    assert "our-model" in capsys.readouterr().out
