"""Proves what Python asks of stored runs and of the predictor: the answers of the commands."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.predict.making_systems import system

import broadgauge
from broadgauge.api.catalog import load_catalog
from broadgauge.api.comparing import compare
from broadgauge.api.here import predict_here
from broadgauge.api.predicting import PROPERTIES, predict
from broadgauge.api.sensitivity import sensitivity
from broadgauge.api.stored_run import Run
from broadgauge.api.whatif import whatif
from broadgauge.cli.main import main
from broadgauge.cli.predict_flags import FLAGS
from broadgauge.predict.system.file import dump_system
from broadgauge.specs.errors import InputError

Captured = pytest.CaptureFixture[str]
ASKED: dict[str, Any] = {"model": "llama3-8b", "gpu": "h100-sxm", "nodes": [2, 8]}
ON = {"network": ["pod", "roce-400g"]}


def said(capsys: Captured, *words: str) -> Any:
    assert main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


def test_predictions_are_those_of_the_command(capsys: Captured) -> None:
    found = predict(**ASKED, **ON, tp=[1, 2], lora=[True, False], micro_batch=1)
    flags = ["--model", "llama3-8b", "--gpu", "h100-sxm", "--nodes", "2,8", "--tp", "1,2"]
    flags += ["--network", "pod,roce-400g", "--lora", "yes,no", "--micro-batch", "1"]
    told = said(capsys, "predict", *flags, "--json")
    assert len(found) == len(told["cases"]) > 4
    by_label = {case["label"]: case for case in told["cases"]}
    for label, prediction in zip(found.labels, found, strict=True):
        assert prediction.step_time_s.value == by_label[label]["step_time_s"]["value"]
    assert list(found.assumed) == told["assumed"]
    assert list(found.notes) == told["notes"]


def test_every_flag_that_asks_has_its_word() -> None:
    parameters = set(inspect.signature(predict).parameters)
    others = {"no_flash_attention": "flash_attention"}
    others |= {"data_stall": "data_stall_s", "checkpoint_stall": "checkpoint_stall_s"}
    others |= {"mean_time_between_failures": "mean_time_between_failures_s"}
    flags = {flag.name.removeprefix("--").replace("-", "_"): flag.field for flag in FLAGS}
    assert {others.get(name, name): field for name, field in flags.items()} == {
        name: field for name, (field, _) in PROPERTIES.items()
    }
    assert PROPERTIES.keys() <= parameters


def test_a_prediction_is_a_sequence_a_table_and_a_page(tmp_path: Path) -> None:
    found = predict(**ASKED, **ON)
    assert found.best is max(found, key=lambda each: each.tokens_per_s)
    assert [row["step_time_s"] for row in found.table] == [p.step_time_s.value for p in found]
    assert [row["is_fitting"] for row in found.table] == [True] * 4
    page = found._repr_html_()
    for label in found.labels:
        assert label in page
    assert found.write_html(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert "80 % interval" in found._repr_mimebundle_()["text/plain"]


def test_print_shows_what_a_notebook_does() -> None:
    found = predict(**ASKED, **ON)
    assert str(found) == found._repr_mimebundle_()["text/plain"]
    assert repr(found) == f"<Predictions: {len(found)} of {len(found)} cases>"


@pytest.mark.parametrize("tokens", ["300B", "0.3T", "300_000_000_000", 300e9, np.float64(3e11)])
def test_tokens_are_given_as_the_flag_takes_them(tokens: float | str) -> None:
    found = predict(**ASKED, **ON, tokens=tokens)
    assert {row["training_tokens_count"] for row in found.table} == {300_000_000_000}


@pytest.mark.parametrize("tokens", ["many", "", 0, -1.0, True])
def test_what_is_no_number_of_tokens_is_said(tokens: float | str) -> None:
    with pytest.raises(InputError, match="tokens="):
        predict(**ASKED, **ON, tokens=tokens)


def test_values_of_numpy_are_values() -> None:
    sizes = np.array([2, 8])
    plain = predict(**ASKED, **ON)
    asked = predict(**(ASKED | {"nodes": sizes}), **ON, micro_batch=np.float64(1))
    assert [p.step_time_s for p in asked] == [p.step_time_s for p in plain]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "no training is named"),
        (ASKED | {"gpu": "h100-smx"}, "did you mean `h100-sxm`"),
        (ASKED | {"nodes": "two"}, "nodes='two': not a whole number"),
        (ASKED | {"nodes": []}, "nodes is an empty list"),
        (ASKED | {"nodes": True}, "nodes=True: not a whole number"),
        (ASKED | {"lora": "yes"}, "lora='yes': it is True or False"),
        (ASKED | {"precision": "bf61"}, "did you mean `bf16`"),
        (ASKED | {"micro_batch": float("nan")}, "micro_batch=nan: not a number"),
        (ASKED | {"pays_ratio": 0}, "pays_ratio=0: not a share"),
        (ASKED | {"pays_ratio": "x"}, "pays_ratio='x': not a number"),
        (ASKED | {"micro_batch": 10**400}, r"micro_batch=10{59}…: not a number from 0 on"),
        (ASKED | {"tokens": 0}, "tokens=0: no number of tokens"),
        (ASKED | {"tokens": 1e308}, r"tokens=1e\+308: no number of tokens"),
        (ASKED | {"usd_per_gpu_hour": 1e308}, "usd_per_gpu_hour=1e[+]308: not a price"),
        (ASKED | {"catalog": 3}, "catalog=3: not a path"),
        (ASKED | {"system": 3}, "system=3: not a path"),
        ({"experiment": 3}, "experiment=3: not a path"),
        ({"experiment": "quickstart", "system": "x.yaml"}, "which cluster"),
    ],
)
def test_what_can_not_be_asked_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        predict(**words)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: broadgauge.open_run(3), "run=3: not a run"),
        (lambda: broadgauge.compare(None), "a=None: not a run"),
        (lambda: broadgauge.compare("x", fail_above_ratio="3%"), "fail_above_ratio='3%': not a"),
        (lambda: broadgauge.list_runs(b"runs"), "runs_folder=b'runs': not a path"),
        (lambda: broadgauge.run(None), "experiment=None: not a path"),
        (lambda: broadgauge.run({}, overrides="launches=3"), "overrides=.*: not a mapping"),
        (lambda: broadgauge.resume([]), r"run=\[\]: not a run"),
        (lambda: broadgauge.sensitivity({}, within_ratio="2%"), "within_ratio='2%': not a number"),
        (lambda: broadgauge.sensitivity("x", system="nosuch"), "nosuch: no such file"),
        (lambda: broadgauge.calibrate(device="gpu"), "no device to calibrate is called 'gpu'"),
        (lambda: broadgauge.load_catalog(3), "catalog=3: not a path"),
        (lambda: broadgauge.predict_here(3), "experiment=3: not a path"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_words(ask: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ask()


@pytest.mark.parametrize(
    "rates", [[1e308, 1, 2], [1e-300, 1, 2], [1, 2], [1, 1, 2], ["1", 2, 3], 3]
)
def test_rates_that_no_link_has_are_refused_before_anything_runs(rates: Any) -> None:
    with pytest.raises(InputError, match="rates_gbps"):
        broadgauge.sensitivity("quickstart", rates_gbps=rates)


def test_predictions_are_cut_as_a_list_is() -> None:
    found = predict(**ASKED, **ON)
    assert list(found[1:3]) == [found[1], found[2]]
    assert list(predict(**(ASKED | {"nodes": np.array(2)}), **ON))


def test_a_catalog_is_taken_as_it_is_or_from_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("networks: [{name: roce-400g, transport: roce, nominal_gbps: 390}]")
    steps = [
        predict(**ASKED, network="roce-400g", catalog=each)[0].step_time_s.value
        for each in (None, mine, [mine], load_catalog(mine), load_catalog(str(mine)))
    ]
    assert steps[1:] == steps[1:2] * 4
    assert steps[0] != steps[1]
    found = predict(**ASKED, network="roce-400g", catalog=mine)
    assert found.notes == (f"{mine} replaces network roce-400g of the catalog",)


def test_what_if_is_the_command(golden: Run, capsys: Captured) -> None:
    found = whatif(golden, case="network=slow", network="10 Gbit/s", nodes=[2, 4])
    flags = ["--case", "network=slow", "--network", "10 Gbit/s", "--nodes", "2,4", "--json"]
    assert json.loads(json.dumps(found.document)) == said(
        capsys, "whatif", str(golden.folder), *flags
    )
    assert [row["nodes"] for row in found.table] == [2, 4]
    assert "Measured" in found._repr_html_()
    with pytest.raises(InputError, match="did you mean `reference`"):
        whatif(golden, case="network=slow", network="referenc")


def test_a_run_is_compared_within_and_with_another(golden: Run, capsys: Captured) -> None:
    within = compare(golden)
    wanted = [(r["a"], r["b"], r["metric"]) for r in golden.analysis["networks"]]
    rows = list(within.table)
    assert [(r["a"], r["b"], r["metric"]) for r in rows if r["of"] == "networks"] == wanted
    assert within.outcome is None
    assert rows[0]["b"] in within._repr_html_()
    across = compare(golden, golden.folder)
    assert {row["of"] for row in across.table} == {"runs"}
    assert {row["ratio"] for row in across.table} == {1.0}
    assert not any(row["is_paired"] for row in across.table)
    assert any("not interleaved" in note for note in across.notes)
    gated = compare(golden, golden, fail_above_ratio=0.03)
    assert gated.outcome == "can't tell"
    assert main(["compare", str(golden.folder), str(golden.folder)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first in across._repr_mimebundle_()["text/plain"]


def test_a_limit_needs_a_baseline(golden: Run) -> None:
    with pytest.raises(InputError, match="no baseline to fail above"):
        compare(golden, fail_above_ratio=0.03)
    with pytest.raises(InputError, match="not a share above 0"):
        compare(golden, golden, fail_above_ratio=3)


def test_a_run_without_rates_enough_has_no_curve(golden: Run) -> None:
    found = sensitivity(golden)
    assert all(document["why_unknown"] for document in found.documents)
    assert len(found.table) == 0
    assert "unknown" in found._repr_html_()
    with pytest.raises(InputError, match="has been run"):
        sensitivity(golden, rates_gbps=[0.1, 0.2, 0.5])
    with pytest.raises(InputError, match="not 3 to 24 different rates"):
        sensitivity("quickstart", rates_gbps=[0.1, 0.2])
    with pytest.raises(InputError, match="no share"):
        sensitivity(golden, within_ratio=0)


def test_this_machine_is_predicted_from_its_file(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "system.yaml"
    file.write_text(dump_system(system(has_steps=True)))
    told = said(capsys, "predict", "quickstart", "--system", str(file), "--json")
    rows = list(predict_here("quickstart", file))
    assert rows
    wanted = [{name: case[name] for name in rows[0]} for case in told["cases"]]
    assert rows == wanted
