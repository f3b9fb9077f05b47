"""Are a file's trainings predicted on the machine that was calibrated?"""

import json
from pathlib import Path

import pytest
from tests.predict.making_systems import system

from broadgauge.cli.main import main
from broadgauge.predict.system.experiment_here import steps_here
from broadgauge.predict.system.file import dump_system
from broadgauge.predict.system.steps import why_unknown_here
from broadgauge.specs.errors import InputError
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.workloads.workload import TrainWorkload

TEXT = """
name: example
cluster: {shapes: [1x1, 2xauto, 2x1]}
networks: [{name: slow, rate_gbps: 0.2}, {name: fast, rate_gbps: 5}]
workloads:
  - {kind: collectives}
  - {kind: train, batch_per_rank: 2, accumulation: 2, model: {layers: 4, seq_len: 64}}
  - {kind: train, name: other}
skip_if: [{workload: other, reason: not now}]
"""


def test_each_training_is_predicted_once() -> None:
    steps, left_out = steps_here(read_experiment(TEXT, "example.yaml", ()), system(has_steps=True))
    # On cores `auto` is one rank a node, so 2xauto is 2x1.
    assert [step.label for step in steps] == [
        "train 1x1 one node",
        "train 2x1 slow",
        "train 2x1 fast",
    ]
    alone, slow, fast = steps
    assert alone.network_bytes == 0
    assert alone.network_cost_s == pytest.approx(0, abs=1e-9)
    assert slow.step_time_s > fast.step_time_s > alone.step_time_s
    # 0.2 Gbit/s carry about 24 MB/s, so the step takes at least its bytes over that.
    assert slow.network_cost_s > 0.8 * slow.network_bytes / 25e6
    assert slow.tokens_per_s == pytest.approx(2 * 2 * 2 * 64 / slow.step_time_s)
    assert dict(left_out)["not now"] > 0
    assert any("`collectives` is no training" in reason for reason, _ in left_out)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("compile: true", "a system file has measured no step with `compile: true`"),
        ("lora: {rank: 2}", "a system file has measured no step with `lora`"),
        ("attention: eager", "a system file has measured no step with `attention: eager`"),
        (
            "activation_checkpointing: full, strategy: fsdp, cpu_offload: true",
            "a system file has measured no step with `activation_checkpointing` and `cpu_offload`",
        ),
        (
            "model: {kind: llama}, compile: true",
            "a system file has measured no step with a Llama-like model and `compile: true`",
        ),
    ],
)
def test_what_no_system_file_has_measured_is_left_out_and_named(keys: str, reason: str) -> None:
    text = TEXT.replace("name: other}", f"name: unknown, {keys}}}")
    text = text[: text.index("skip_if")]
    steps, left_out = steps_here(read_experiment(text, "example.yaml", ()), system(has_steps=True))
    assert {step.label.split()[0] for step in steps} == {"train"}
    assert f"`unknown`: {reason}" in dict(left_out)


def test_hsdp_is_a_step_that_no_system_file_has_measured() -> None:
    train = TrainWorkload(kind="train", strategy="hsdp")
    words = why_unknown_here(train)
    assert words == "`train`: a system file has measured no step with `strategy: hsdp`"
    assert why_unknown_here(train.model_copy(update={"strategy": "fsdp"})) is None


def test_a_file_without_training_is_refused() -> None:
    text = "name: x\nnetworks: [{name: n, rate_gbps: 1}]\nworkloads: [{kind: collectives}]\n"
    with pytest.raises(InputError, match="there is no training to predict"):
        steps_here(read_experiment(text, "x.yaml", ()), system())


def test_predict_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(dump_system(system(has_steps=True)))
    words = ("predict", "quickstart", "--system", str(path))
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in ("Toy CPU of toy", "train 2x1 pod-like", "network cost", "no interval is known"):
        assert part in out, part
    assert main((*words, "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["cases"]) == 4
    assert main((*words, "--csv")) == 2
    assert "--csv does not go with" in capsys.readouterr().err
