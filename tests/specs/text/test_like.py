"""Proves specs/text/like.py: a model's name is its sizes, and what is given beside it wins."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_machine, devices_of

from broadgauge.catalog.trained_models import trained_model
from broadgauge.engine.plan import make_plan
from broadgauge.running.experiments import load, load_text
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.workloads.collectives import CollectivesWorkload, ModelMessages
from broadgauge.specs.workloads.gpt import GptModel
from broadgauge.specs.workloads.llama import LlamaModel
from broadgauge.specs.workloads.training import TrainWorkload

TEXT = """\
name: x
cluster: {shapes: [1x1], device: cpu}
workloads:
  - {kind: train, model: MODEL}
"""
MESSAGES = """\
name: x
cluster: {shapes: [1x2], device: cpu}
workloads:
  - {kind: collectives, sizes: {model: MODEL, strategy: fsdp}}
"""
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "max_position_embeddings": 512,
    "num_attention_heads": 4,
    "num_hidden_layers": 6,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "vocab_size": 1000,
}


def read(model: str, *flags: str, text: str = TEXT, folder: Path = Path()) -> Experiment:
    experiment = load_text(text.replace("MODEL", model), folder / "e.yaml", flags).experiment
    assert read_experiment(dump_experiment(experiment), "stored.yaml") == experiment
    return experiment


def models(model: str, *flags: str, folder: Path = Path()) -> list[GptModel | LlamaModel]:
    found = []
    for workload in read(model, *flags, folder=folder).workloads:
        assert isinstance(workload, TrainWorkload)
        found.append(workload.model)
    return found


def test_a_word_is_a_known_models_sizes() -> None:
    (model,) = models("llama-3.1-8b")
    assert model == LlamaModel(
        kind="llama", shape_of="llama3-8b", shape_of_layers=32, layers=32, hidden=4096, heads=32,
        kv_heads=8, ffn_hidden=14_336, vocabulary=128_256, seq_len=8192,
    )  # fmt: skip
    assert (model.parameters, model.is_twin) == (8_030_261_248, False)
    assert models("meta-llama/Llama-3.1-8B") == models("{like: llama3-8b}") == [model]
    (gpt,) = models("gpt2-large")
    assert gpt == GptModel(
        shape_of="gpt2-large", shape_of_layers=36, layers=36, hidden=1280, heads=20,
        vocabulary=50_257, seq_len=1024,
    )  # fmt: skip


def test_fewer_layers_are_a_twin_of_the_same_layer_shape() -> None:
    (twin,) = models("{like: llama-3.1-8b, layers: 8, seq_len: 512}")
    (whole,) = models("llama-3.1-8b")
    assert (twin.layers, twin.shape.seq_len, twin.is_twin) == (8, 512, True)
    assert twin.shape.block_parameters == whole.shape.block_parameters
    assert twin.named_in_words == "llama3-8b, 8 of its 32 layers, 2.80B parameters"
    assert whole.named_in_words == "llama3-8b, 8.03B parameters"


@pytest.mark.parametrize(
    ("scale", "layers"), [("0.25", 3), ("1", 12), ("0.01", 1), ("0.2", 2), ("0.21", 3)]
)
def test_scale_is_a_share_of_the_layers_and_at_least_one(scale: str, layers: int) -> None:
    (model,) = models(f"{{like: gpt2, scale: {scale}}}")
    assert (model.layers, model.shape_of_layers, model.scale) == (layers, 12, None)


def test_with_another_layer_shape_it_is_no_twin() -> None:
    (model,) = models("{like: gpt2, layers: 2, hidden: 96, heads: 6}")
    assert (model.shape.hidden, model.shape_of, model.is_twin) == (96, None, False)
    assert model.named_in_words is None
    (same,) = models("{like: gpt2, layers: 2, hidden: 768}")
    assert same.shape_of == "gpt2"


def test_models_and_their_layers_are_axes() -> None:
    experiment = read("[gpt2, llama-3.1-8b]")
    assert [each.name for each in experiment.workloads] == [
        *("train-model-gpt2", "train-model-llama-3.1-8b"),
    ]
    assert [type(each) for each in models("[gpt2, llama-3.1-8b]")] == [GptModel, LlamaModel]
    assert [each.layers for each in models("{like: gpt2, layers: [2, 4]}")] == [2, 4]
    assert [each.layers for each in models("{like: gpt2, scale: [0.5, 1]}")] == [6, 12]
    mixed = models("[gpt2, {like: llama-3.1-8b, layers: 8}]")
    assert [each.layers for each in mixed] == [12, 8]


def test_a_config_is_read_from_the_experiments_folder(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(CONFIG))
    (model,) = models("{like: ./tiny/config.json, layers: 4, seq_len: 128}", folder=tmp_path)
    assert isinstance(model, LlamaModel)
    assert (model.shape_of, model.shape_of_layers, model.layers) == ("tiny", 6, 4)
    assert (model.kv_heads, model.ffn_hidden, model.seq_len) == (2, 96, 128)
    flag = "workloads.train.model=tiny/config.json"
    assert models("gpt2", flag, folder=tmp_path)[0].shape_of == "tiny"


def test_a_config_is_read_from_the_folder_of_the_file_that_names_it(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "tiny").mkdir(parents=True)
    (base / "tiny" / "config.json").write_text(json.dumps(CONFIG))
    (base / "e.yaml").write_text(TEXT.replace("MODEL", "tiny/config.json"))
    child = tmp_path / "child.yaml"
    child.write_text("extends: base/e.yaml\nworkloads: [{name: train, model: {layers: 2}}]\n")
    (workload,) = load(str(child), ()).experiment.workloads
    assert isinstance(workload, TrainWorkload)
    assert (workload.model.shape_of, workload.model.layers) == ("tiny", 2)


def test_flags_change_a_model_that_is_one_word() -> None:
    (model,) = models("gpt2", "workloads.train.model.layers=2")
    assert (model.shape_of, model.layers, model.shape_of_layers) == ("gpt2", 2, 12)
    (other,) = models("{like: gpt2, layers: 4}", "workloads.train.model.like=gpt2-xl")
    assert (other.shape_of, other.layers) == ("gpt2-xl", 4)
    (replaced,) = models("{layers: 4, hidden: 64}", "workloads.train.model=gpt2")
    assert replaced.shape_of == "gpt2"


def test_collectives_send_a_known_models_messages() -> None:
    (workload,) = read("{like: llama-3.1-8b, layers: 8}", text=MESSAGES).workloads
    assert isinstance(workload, CollectivesWorkload)
    assert isinstance(workload.sizes, ModelMessages)
    block, rest = workload.sizes_bytes()
    assert block == 4 * (2 * 4096 * (4096 + 1024) + 3 * 4096 * 14_336 + 2 * 4096)
    assert rest == 4 * (2 * 128_256 * 4096 + 4096)
    assert workload.model_in_words == "llama3-8b, 8 of its 32 layers, 2.80B parameters"


def test_a_plan_says_which_model_is_trained() -> None:
    experiment = read("[{like: gpt2, layers: 2}, {layers: 2}]")
    plan = make_plan(experiment, devices_of(a_machine()))
    assert "train-model-1: gpt2, 2 of its 12 layers, 53.6M parameters" in plan.notes
    assert not [note for note in plan.notes if note.startswith("train-model-2")]
    (named,) = make_plan(read("gpt2"), devices_of(a_machine())).notes
    assert named == "train: gpt2, 124M parameters"


@pytest.mark.parametrize("text", [TEXT, MESSAGES])
def test_a_name_is_a_label_and_the_sizes_are_the_case(text: str) -> None:
    """A catalog that renames a model changes no case."""
    by_name = read("{like: gpt2, layers: 2}", text=text)
    numbers: dict[str, Any] = {
        **trained_model("gpt2"),
        "layers": 2,
        "shape_of": None,
    }
    by_number = read(json.dumps(numbers), text=text)
    keys = [
        [case.key for case in make_plan(each, devices_of(a_machine())).cases]
        for each in (by_name, by_number)
    ]
    assert len(keys[0]) == 1
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("model", "column", "said"),
    [
        ("lama-3.1-8b", 19, "the catalog has no model `lama-3.1-8b`"),
        ("lama-3.1-8b", 19, "did you mean `llama-3.1-8b`?"),
        ("xyz", 19, "`broadgauge catalog list models` prints those known"),
        ("{like: lama3-8b}", 27, "did you mean `llama3-8b`?"),
        ("{like: none/config.json}", 27, "the model none/config.json can't be read"),
        ("{like: deepseek-v3}", 27, "latent attention"),
        ("{like: gpt2, kind: llama}", 39, "`gpt2` is a `gpt`, no `llama`"),
        ("{like: gpt2, kind: llama}", 39, "leave `kind` out"),
        ("{like: gpt2, layers: 13}", 39, "`gpt2` has 12 layers, and not 13"),
        ("{like: gpt2, layers: 13}", 39, "gives its sizes without `like`"),
        ("{like: gpt2, layers: 2, scale: 0.5}", 50, "`scale` and `layers` both say"),
        ("{layers: 2, scale: 0.5}", 38, "`scale` is a share of the layers of a model that `like`"),
        ("{like: gpt2, scale: 1.5}", 39, "`scale` takes a number of 1 or less, not `1.5`"),
        ("{like: gpt2, scale: 0}", 39, "`scale` takes a number above 0, not `0`"),
        ("{like: gpt2, scale: half}", 39, "`scale` takes a number, not `half`"),
        ("{like: gpt2, scale: true}", 39, "`scale` takes no `true`"),
        ("{like: gpt2, layrs: 2}", 39, "did you mean `layers`?"),
        ("{like: gpt2, layers: few}", 39, "`layers` takes a whole number, not `few`"),
        ("{like: 3}", 27, "`like` takes a text"),
        ("{like: [gpt2, lama3-8b]}", 40, "did you mean `llama3-8b`?"),
    ],
)
@pytest.mark.parametrize("text", [TEXT, MESSAGES])
def test_what_is_wrong_is_said_with_its_place(
    text: str, model: str, column: int, said: str
) -> None:
    with pytest.raises(ExperimentError) as caught:
        read(model, text=text)
    assert said in str(caught.value)
    moved = text.splitlines()[3].index("model") - TEXT.splitlines()[3].index("model")
    assert str(caught.value).startswith(f"e.yaml:4:{column + moved}: ")


def test_every_models_problem_is_told_once() -> None:
    with pytest.raises(ExperimentError) as caught:
        read("[lama3-8b, deepseek-v3, {like: gpt3-zz, layers: [1, 2]}]")
    assert len(caught.value.problems) == 3


def test_without_the_catalog_a_name_is_refused() -> None:
    with pytest.raises(ExperimentError, match="looked up where an experiment file is read"):
        read_experiment(TEXT.replace("MODEL", "gpt2"), "e.yaml")
