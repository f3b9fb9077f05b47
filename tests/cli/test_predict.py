"""Does `broadgauge predict` answer as documented, at any width, and refuse in one message?"""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.predict.making_systems import system, timing

from broadgauge.cli.main import main
from broadgauge.predict.calibration.factors import step_s
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.system.file import dump_system
from broadgauge.predict.system.knowledge import observations_of
from broadgauge.report.predict import page as html_predict
from broadgauge.specs.machines.system import StepTime, System
from broadgauge.specs.workloads.gpt import GptModel

LLAMA = ("predict", "--model", "llama3-8b", "--gpu", "h100-sxm")
MATRIX = (*LLAMA, "--nodes", "1,2,4", "--network", "pod,roce-400g*8")


@pytest.fixture(params=[50, 80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_the_table_fits_any_terminal(capsys: pytest.CaptureFixture[str], width: int) -> None:
    out = said(capsys, *MATRIX)
    assert max(map(len, out.splitlines())) <= width
    words = " ".join(out.split())
    for part in (
        "80 % interval", "tokens/s", "MFU", "scaling", "exposed", "memory a GPU",
        "bottleneck", "assumed:", "roce-400g*8, 4 nodes", "fits,", "nothing is gained",
        "Throughput", "Step time by bandwidth", "What follows",
        "nodes over pod are slower than",
    ):  # fmt: skip
        assert part in words, part


def test_json_is_one_object_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, *MATRIX, "--json", "--explain"))
    assert document["format"] == "broadgauge prediction"
    assert len(document["cases"]) == 5
    for case in document["cases"]:
        step = case["step_time_s"]
        assert step["low"] <= step["value"] <= step["high"]
        assert sum(case["parts"].values()) == pytest.approx(step["value"])
        assert case["memory"]["total_bytes"] > 0
        assert case["explanation"]["model_s"] == step["value"]
    (curve,) = document["bandwidth"]
    assert len(curve["carried_gbps"]) == len(curve["step_time_s"])
    rules = {each["rule"] for each in document["recommendations"]}
    assert "network suffices" in rules
    assert any(
        "parameters" in line for r in document["recommendations"] for line in r["arithmetic"]
    )


def test_csv_has_a_line_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(said(capsys, *MATRIX, "--csv"))))
    assert [(row["network"], row["nodes"]) for row in rows] == [
        ("", "1"), ("pod", "2"), ("pod", "4"), ("roce-400g*8", "2"), ("roce-400g*8", "4"),
    ]  # fmt: skip
    assert all(float(row["step_time_s"]) > 0 for row in rows)


OURS = "networks: [{name: pod, transport: overlay, nominal_gbps: 200, source: us, date: 2026-01}]"


@pytest.mark.parametrize("form", ["text", "json", "csv", "html"])
def test_what_a_file_of_the_users_replaces_is_said(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, page = tmp_path / "mine.yaml", tmp_path / "page.html"
    mine.write_text(OURS)
    words = [*LLAMA, "--nodes", "2", "--network", "pod", "--catalog", str(mine)]
    more = {"json": ["--json"], "csv": ["--csv"], "html": ["--html", str(page)]}.get(form, [])
    assert main([*words, *more]) == 0
    captured = capsys.readouterr()
    said = f"{mine} replaces network pod of the catalog"
    if form == "json":
        (replaced,) = json.loads(captured.out)["replaced"]
        assert replaced == {
            "kind": "networks", "name": "pod", "filename": str(mine), "where": f"{mine}:1:12",
        }  # fmt: skip
    elif form == "html":
        assert said in page.read_text()
    else:
        out = captured.err if form == "csv" else captured.out
        assert said.replace(" ", "") in "".join(out.split())


def test_many_cases_show_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = ",".join(map(str, range(1, 62)))
    out = said(capsys, *LLAMA, "--network", "roce-400g*8", "--nodes", nodes)
    assert "61 cases: the 20 of them that fit with most tokens/s" in " ".join(out.split())
    assert "61 nodes" in out
    assert "30 nodes" not in out


def test_a_price_makes_a_cost(capsys: pytest.CaptureFixture[str]) -> None:
    free = json.loads(said(capsys, *LLAMA, "--usd-per-gpu-hour", "0", "--json"))
    assert free["cases"][0]["usd_per_gigatoken"] == 0
    (case,) = json.loads(said(capsys, *LLAMA, "--usd-per-gpu-hour", "2", "--json"))["cases"]
    expected = 8 * 2 * 1e9 / case["tokens_per_s"] / 3600
    assert case["usd_per_gigatoken"] == pytest.approx(expected)


def test_no_node_has_another_clouds_price(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("predict", "--model", "llama3-8b", "--node", "a3-megagpu-8g,p5.48xlarge", "--json")
    document = json.loads(said(capsys, *words))
    other, own = (each["usd_per_gigatoken"] for each in document["cases"])
    assert other is None
    assert own > 0
    assert "no price of a3-megagpu-8g is known" in document["assumed"]


def test_what_does_not_fit_gets_no_advice(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("predict", "--model", "llama3-405b", "--gpu", "h100-sxm", "--network")
    out = said(capsys, *words, "pod,roce-400g*8", "--nodes", "1,2,3,4")
    flat = " ".join(out.split())
    assert "none of 7 fits in the GPUs' memory; pod, 4 nodes misses by least" in flat
    assert "2 more that need more memory" in flat
    for part in ("What follows", "Throughput", "Step time by bandwidth", "suffices"):
        assert part not in out


def test_the_nearest_settings_that_fit_are_rows_and_said_to_be_so(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    words = ("predict", "--model", "llama3-70b", "--gpu", "h100-sxm", "--network", "roce-400g*8")
    out = said(capsys, *words, "--nodes", "1")
    assert max(map(len, out.splitlines())) <= width
    flat = " ".join(out.split())
    assert "↳ not asked for: the nearest settings that fit" in flat
    assert (
        "it fits with full recomputation and CPU offload, or with full recomputation and 4" in flat
    )
    document = json.loads(said(capsys, *words, "--nodes", "1", "--tokens", "1B", "--json"))
    assert len(document["cases"]) == 1
    assert [each["change"] for each in document["nearest"]] == document["fits_with"][0]["changes"]
    for each in document["nearest"]:
        assert each["memory"]["is_fitting"]
        assert each["instead_of"] == document["cases"][0]["label"] == "1 node"
        assert each["training"]["usd"]["value"] > 0
    rows = list(csv.DictReader(io.StringIO(said(capsys, *words, "--nodes", "1", "--csv"))))
    assert [(row["change"], row["is_fitting"]) for row in rows] == [
        ("", "no"), *((each["change"], "yes") for each in document["nearest"]),
    ]  # fmt: skip


def test_days_and_dollars_of_a_whole_training(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    words = (*LLAMA, "--nodes", "4", "--network", "roce-400g*8", "--tokens", "1.5T")
    out = said(capsys, *words)
    assert max(map(len, out.splitlines())) <= width
    for part in ("1.5T tokens", " days", "cost of 1.5T", "without restarts"):
        assert part in " ".join(out.split()), part
    (case,) = json.loads(said(capsys, *words, "--usd-per-gpu-hour", "2", "--json"))["cases"]
    training = case["training"]
    assert training["tokens_count"] == 1.5e12
    for end in ("value", "low", "high"):
        steps = 1.5e12 / (case["question"]["global_batch"] * case["question"]["seq_len"])
        assert training["time_s"][end] == pytest.approx(steps * case["step_time_s"][end])
        hours = training["time_s"][end] / 3600
        assert training["usd"][end] == pytest.approx(32 * 2 * hours)
    unpriced = ("predict", "--model", "llama3-8b", "--node", "a3-megagpu-8g", "--tokens", "1T")
    (case,) = json.loads(said(capsys, *unpriced, "--json"))["cases"]
    assert case["training"]["usd"] is None
    assert case["training"]["time_s"]["value"] > 0
    assert "unknown" in said(capsys, *unpriced)


@pytest.mark.parametrize("tokens", ["lots", "0", "-5", "1.5X", "T", "1e40", "nan", "", "300B,1T"])
def test_what_is_no_number_of_tokens_is_refused(
    tokens: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*LLAMA, f"--tokens={tokens}"]) == 2
    assert "hint: --tokens 300B, or 1.5T" in capsys.readouterr().err


def test_what_fits_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, *LLAMA, "--strategy", "ddp,fsdp", "--nodes", "2", "--network", "roce-400g")
    assert out.index("\nfsdp") < out.index("\nddp")


def test_what_few_have_measured_is_said_to_be_wider_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (*LLAMA, "--nodes", "1", "--precision", "bf16,fp8")
    flat = " ".join(said(capsys, *words).split())
    assert "kernel times 2.6 times as uncertain as others; one measured step" in flat
    assert "84 steps of 6 sources" in flat
    flat = " ".join(said(capsys, *words, "--explain").split())
    assert "its interval: few have measured FP8" in flat
    cases = json.loads(said(capsys, *words, "--json"))["cases"]
    assert [each["widened"] and each["widened"]["kind"] for each in cases] == [None, "fp8"]
    assert "84 steps of 6 sources" in cases[1]["widened"]["why"]


def test_what_is_uncertain_says_of_what(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*LLAMA, "--nodes", "1,2,4", "--network", "vnic-100g")
    flat = " ".join(said(capsys, *words).split())
    assert "most uncertain of 1 node: kernel times" in flat
    assert flat.count("the rate of vnic-100g, 0.4 to 3.6 GB/s a node") == 1
    assert "--network vnic-100g=RATE" in flat


def test_explain_says_both_estimates(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*LLAMA, "--nodes", "2", "--network", "ib-hdr=20GB/s", "--explain")
    out = " ".join(said(capsys, *words).split())
    for part in ("bytes over the nominal rate", "bytes over the measured rate", "this model",
                 "why it differs from bytes over the measured rate"):  # fmt: skip
        assert part in out, part


class Loads(HTMLParser):
    """What a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]


def test_the_page_is_whole_and_loads_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the runtime's script, which the report's own tests hold and takes seconds to cut."""
    monkeypatch.setattr(html_predict, "runtime", lambda: None)
    path = tmp_path / "page.html"
    said(capsys, *MATRIX, "--html", str(path))
    page = path.read_text()
    reader = Loads()
    reader.feed(page)
    assert [load for load in reader.found if not load.startswith("#")] == []
    for part in ("Throughput by nodes", "Step time by bandwidth", "roce-400g*8, 4 nodes", "<svg"):
        assert part in page
    assert re.search(r"default-src &#x27;none&#x27;|default-src 'none'", page)


def test_the_trace_is_of_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    said(capsys, *LLAMA, "--nodes", "2", "--network", "roce-400g*8", "--trace", str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert any(event["ph"] == "X" and event["dur"] > 0 for event in events)
    assert main((*MATRIX, "--trace", str(path))) == 2
    assert "5" in capsys.readouterr().err


def test_an_experiment_is_predicted_on_other_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "predict", "gpt2-networks", "--gpu", "a100-sxm-40gb")
    assert "gpt2-large-708m" in out
    assert "left out" in out


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("--model", "llama3-8b", "--gpu", "h100-sxn"), "no gpu `h100-sxn`", "did you mean"),
        (("--model", "70b", "--gpu", "h100-sxm"), "no model `70b`", "`llama3-70b`"),
        ((*LLAMA[1:], "--nodes", "2", "--network", "8*roce-400g"), "no network `8*roce-400g`",
         "did you mean `roce-400g*8`"),
        (("--model", "lama3-8b", "--gpu", "h100-sxm"), "no model", "did you mean `llama3-8b`"),
        (("--gpu", "h100-sxm"), "no training is named", "--model"),
        (("--model", "llama3-8b"), "no GPU is named", "--gpu"),
        ((*LLAMA[1:], "--tp", "3"), "do not divide by tensor parallel 3", "1, 2, 4, 8"),
        ((*LLAMA[1:], "--pp", "64", "--nodes", "8", "--network", "roce-400g"),
         "64 pipeline stages are more than the 32 layers", "at most 32"),
        ((*LLAMA[1:], "--nodes", "2", "--network", "roce-0g"), "zero bandwidth", "roce-400g"),
        ((*LLAMA[1:], "--nodes", "2"), "2 nodes need a network", "--network"),
        ((*LLAMA[1:], "--nodes", "two"), "--nodes two: not a whole number", "--nodes 2,4,8"),
        ((*LLAMA[1:], "--nodes", "2,,4"), "an empty item", "a,b,c"),
        ((*LLAMA[1:], "--strategy", "fdsp"), "--strategy fdsp: not known", "`fsdp`"),
        ((*LLAMA[1:], "--lora", "maybe"), "it is yes or no", "--lora"),
        ((*LLAMA[1:], "--precision", "fp8", "--gpu", "a40"), "no fp8", "bf16"),
        ((*LLAMA[1:], "--usd-per-gpu-hour", "nan"), "not a price", None),
        ((*LLAMA[1:], "--json", "--csv"), "one of them", None),
        ((*LLAMA[1:], "--pays", "much"), "not a share above 0", "--pays 10%"),
        ((*LLAMA[1:], "--data-stall", "20"), "a time needs a unit", "20ms"),
        (("quickstart",), "quickstart names no GPU", "--gpu"),
        (("quickstart", "--gpu", "a40", "--model", "gpt2"), "is for the experiment", "--nodes"),
        (("no-such-file", "--gpu", "a40"), "no such file", None),
    ],
)  # fmt: skip
def test_bad_input_is_one_message(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str, hint: str | None
) -> None:
    assert main(("predict", *words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("broadgauge: ") == 1
    assert message in captured.err
    if hint is not None:
        assert hint in captured.err.partition("hint:")[2]


def slow_a40() -> System:
    """An A40 whose two large steps took 1.4 times as long as predicted."""
    model = GptModel(layers=8, hidden=2048, heads=16, vocabulary=50_257, seq_len=1024)
    plain = system()
    steps = tuple(
        StepTime(model=model, dtype="bfloat16", batch=batch, time=timing(1.0)) for batch in (4, 8)
    )
    compute = plain.compute.model_copy(update={"steps": steps})
    device = plain.device.model_copy(update={"kind": "cuda", "name": "NVIDIA A40"})
    made = plain.model_copy(update={"device": device, "compute": compute})
    usual_s = step_s([each.case for each in observations_of(made)], default_knowledge())
    timed = tuple(
        step.model_copy(update={"time": timing(1.4 * float(seconds))})
        for step, seconds in zip(steps, usual_s, strict=True)
    )
    return made.model_copy(update={"compute": compute.model_copy(update={"steps": timed})})


def test_a_system_file_names_its_gpu_and_calibrates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.yaml"
    words = ("predict", "--model", "gpt2-xl", "--micro-batch", "8")
    path.write_text(dump_system(slow_a40()))
    (slower,) = json.loads(said(capsys, *words, "--system", str(path), "--json"))["cases"]
    alike = ("--gpu", "a40", "--gpus-per-node", "2")
    (usual,) = json.loads(said(capsys, *words, *alike, "--json"))["cases"]
    assert slower["question"]["gpu"] == "a40"
    ratio = slower["step_time_s"]["value"] / usual["step_time_s"]["value"]
    assert 1.15 < ratio < 1.5
    assert main((*words, "--system", str(path), "--gpu", "h100-sxm")) == 2
    assert "the system file is of a40, and h100-sxm is asked" in capsys.readouterr().err


def test_nodes_are_like_the_machine_that_was_measured_unless_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(slow_a40()))
    words = ("predict", "--model", "gpt2-xl", "--system", str(path), "--network", "roce-400g")
    words = (*words, "--nodes", "2", "--json")
    like = json.loads(said(capsys, *words))
    assert like["cases"][0]["question"]["gpus_per_node"] == 2
    assert "GPUs a node: 2 (as that machine has)" in like["assumed"]
    said_so = json.loads(said(capsys, *words, "--gpus-per-node", "4"))
    assert said_so["cases"][0]["question"]["gpus_per_node"] == 4
    assert not any("as that machine has" in each for each in said_so["assumed"])


def unknown_gpu() -> System:
    plain = slow_a40()
    device = plain.device.model_copy(update={"name": "NVIDIA Q7 Turbo"})
    return plain.model_copy(update={"device": device})


OUR_GPU = """
gpus:
  - {name: q7-turbo, generation: hopper, form: sxm, sms: 132, memory_gib: 77,
     memory_gbyte_per_s: 3350, pcie_generation: 5, tdp_watts: 700, max_mhz: 1980,
     nvlink: {gbyte_per_s: 450, links: 18, boards: [{gpus: 8, topology: nvswitch}]},
     peaks: {fp32: 37.4, tf32: 74.8, fp16: 149.7, bf16: 149.7}}
"""


def test_a_gpu_of_no_catalog_is_predicted_with_another_or_with_an_entry_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, mine = tmp_path / "system.yaml", tmp_path / "mine.yaml"
    path.write_text(dump_system(unknown_gpu()))
    mine.write_text(OUR_GPU)
    words = ("predict", "--model", "gpt2-xl", "--micro-batch", "8", "--system", str(path), "--json")
    assert main(words) == 2
    refused = capsys.readouterr().err
    assert "doesn't know: NVIDIA Q7 Turbo" in refused
    assert "--gpu NAME" in refused.partition("hint:")[2]
    lent = json.loads(said(capsys, *words, "--gpu", "a40"))
    assert lent["cases"][0]["question"]["gpu"] == "a40"
    words_of = "NVIDIA Q7 Turbo is in no catalog: memory, price and links are of a40"
    assert words_of in lent["assumed"]
    own = json.loads(said(capsys, *words, "--catalog", str(mine)))
    assert own["cases"][0]["question"]["gpu"] == "q7-turbo"
    assert own["cases"][0]["question"]["own_gpu"]["memory_gib"] == 77
    assert own["cases"][0]["memory"]["capacity_bytes"] < 77 * 2**30 + 1
    assert not any("is in no catalog" in each for each in own["assumed"])
    assert main((*words, "--gpu", "a40,l40s")) == 2


@pytest.mark.parametrize(
    "flag", [("--catalog", "x.yaml"), ("--strategy", "fsdp"), ("--tp", "2"), ("--csv",)]
)
def test_what_says_nothing_of_the_calibrated_machine_is_refused(
    flag: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(slow_a40()))
    assert main(("predict", "quickstart", "--system", str(path), *flag)) == 2
    assert f"{flag[0]} does not go with an experiment" in capsys.readouterr().err


def test_a_system_file_of_cores_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(system()))
    assert main(("predict", "--model", "gpt2", "--system", str(path))) == 2
    assert "predictions are of GPUs" in capsys.readouterr().err


def test_measured_steps_calibrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the columns of the tables that `validate` scores."""
    table = Path("references/measured-training.csv").read_text().splitlines()
    row = next(line for line in table[1:] if "maknee" in line)
    path = tmp_path / "mine.csv"
    path.write_text(f"{table[0]}\n{row}\n")
    out = said(capsys, *LLAMA, "--measured", str(path))
    assert "calibrated by 1 step of" in " ".join(out.split())
    path.write_text(f"{table[0]}\n{row.replace('h100-sxm-80gb', 'h100-sxn')}\n")
    assert main((*LLAMA, "--measured", str(path))) == 2
    assert "no row can be read: line 2" in capsys.readouterr().err
