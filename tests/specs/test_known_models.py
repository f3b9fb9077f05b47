"""Does `like` mean a known model's shape, with what is given in its place?"""

from pathlib import Path

import pytest

from broadgauge.catalog.models import ModelEntry, find_model, known_models
from broadgauge.catalog.trained_shapes import trained_shape
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.model_shape import LlamaShape
from broadgauge.messages.tasks import TrainTask
from broadgauge.running.experiments import load_text
from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExperimentError, InputError
from broadgauge.specs.reading import read_experiment
from broadgauge.specs.tasks import train_task
from broadgauge.specs.workload import (
    CollectivesWorkload,
    GptModel,
    LlamaModel,
    ModelMessages,
    TrainWorkload,
)
from broadgauge.specs.writing import dump_experiment


def can_be_trained(name: str) -> bool:
    try:
        trained_shape(name)
    except InputError:
        return False
    return True


TRAINED = [entry for entry in known_models() if can_be_trained(entry.name)]
TEXT = """\
name: x
cluster: {shapes: [1x1]}
workloads:
  - {kind: train, model: MODEL}
"""


def models(model: str) -> list[object]:
    experiment = load_text(TEXT.replace("MODEL", model), Path("e.yaml")).experiment
    assert read_experiment(dump_experiment(experiment), "again.yaml") == experiment
    found = []
    for workload in experiment.workloads:
        assert isinstance(workload, TrainWorkload)
        found.append(workload.model)
    return found


def test_fewer_layers_of_the_same_shape() -> None:
    (model,) = models("{like: llama3-8b, layers: 4, seq_len: 128}")
    assert isinstance(model, LlamaModel)
    assert (model.shape_of, model.like) == ("llama3-8b", None)
    assert (model.layers, model.seq_len) == (4, 128)
    assert (model.hidden, model.heads, model.kv_heads, model.ffn) == (4096, 32, 8, 14_336)
    (gpt,) = models("{like: gpt2-large}")
    assert gpt == GptModel(
        shape_of="gpt2-large", layers=36, hidden=1280, heads=20, vocabulary=50_257, seq_len=1024
    )


def test_an_axis_of_layers_takes_the_shape_each_time() -> None:
    assert [model.parameters for model in models("{like: qwen3-8b, layers: [1, 3]}")] == [  # type: ignore[attr-defined]
        LlamaModel.model_validate(trained_shape("qwen3-8b") | {"layers": layers}).parameters
        for layers in (1, 3)
    ]


@pytest.mark.parametrize("entry", TRAINED, ids=lambda entry: entry.name)
def test_a_model_that_can_be_trained_has_the_catalogs_parameters(entry: ModelEntry) -> None:
    """But for positions that no sequence reaches, and norms of queries and keys."""
    sizes = trained_shape(entry.name)
    kind = LlamaModel if sizes["kind"] == "llama" else GptModel
    assert kind.model_validate(sizes).parameters == pytest.approx(entry.params, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "blocks", "hidden", "parameters"),
    [("gpt2-85m", 12, 768, 85_254_144), ("gpt2-large-708m", 36, 1280, 708_720_640)],
)
def test_mingpts_models_have_its_parameters_to_the_last(
    name: str, blocks: int, hidden: int, parameters: int
) -> None:
    """Counted layer by layer: 65 characters, 128 positions, a head without bias of its own. The
    article says 85 and 708 million. Source: karpathy/minGPT, mingpt/model.py and
    projects/chargpt/chargpt.py."""
    norm = 2 * hidden
    attention = 4 * (hidden * hidden + hidden)
    mlp = hidden * 4 * hidden + 4 * hidden + 4 * hidden * hidden + hidden
    tables = 2 * 65 * hidden + 128 * hidden
    assert blocks * (attention + mlp + 2 * norm) + norm + tables == parameters
    model = GptModel.model_validate(trained_shape(name))
    assert model.parameters == parameters == find_model(name).params
    assert (model.tied_head, model.vocabulary, model.seq_len) == (False, 65, 128)


def test_the_articles_models_can_be_trained() -> None:
    assert len(TRAINED) > 40
    for name in ("llama3-8b", "granite-3.1-8b", "gpt2-large", "mistral-7b", "llama3.2-1b"):
        assert trained_shape(name)["shape_of"] == find_model(name).name


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("{like: mixtral-8x7b}", "a mixture of experts"),
        ("{like: gemma3-12b}", "4 norms a block"),
        ("{like: lama3-8b}", "did you mean `llama3-8b`?"),
        ("{like: llama3-8b, kind: gpt}", "`llama3-8b` is a `llama`, no `gpt`"),
        ("{like: llama3-8b, layrs: 2}", "did you mean `layers`?"),
    ],
)
def test_what_can_not_be_trained_is_said_with_its_place(model: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        models(model)
    assert said in str(caught.value)
    assert str(caught.value).startswith("e.yaml:4:")


def test_without_the_catalog_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="looked up where an experiment file is read"):
        TrainWorkload.model_validate({"kind": "train", "model": {"like": "llama3-8b"}})


def key(**keys: object) -> str:
    return Case(
        workload=TrainWorkload.model_validate({"kind": "train"} | keys),
        network=None,
        nodes=1,
        ranks_per_node=1,
        device="cpu",
        backend="gloo",
        environment={},
    ).key


def test_new_keys_leave_the_keys_of_cases_as_they_were() -> None:
    """The first is that of the version before there were Llamas."""
    assert key() == "e5f48694ae9e1899"
    assert key(model={"kind": "gpt"}) == key()
    assert key(model={"shape_of": "gpt2"}) == key()
    others = [
        key(model={"kind": "llama"}),
        key(compile=True),
        key(strategy="hsdp"),
        key(lora={}),
        key(activation_checkpointing="full"),
        key(learning_rate_warm_up_steps=3),
        key(model={"tied_head": False}),
        key(strategy="fsdp"),
        key(strategy="fsdp", reduce_each_micro_batch=True),
    ]
    assert len({key(), *others}) == len(others) + 1


@pytest.mark.parametrize(
    "keys",
    [
        {"model": {"kind": "llama", "kv_heads": 2}, "lora": {"targets": ["query"]}},
        {"strategy": "hsdp", "shard_ranks": 4, "compile": True, "cpu_offload": True},
    ],
)
def test_tasks_travel_as_they_are(keys: dict[str, object]) -> None:
    task = train_task(TrainWorkload.model_validate({"kind": "train"} | keys))
    assert decode(TrainTask, encode(task)) == task


def test_collectives_take_a_llamas_messages_too() -> None:
    model = {"kind": "llama", "hidden": 64, "heads": 2, "ffn": 128}
    workload = CollectivesWorkload.model_validate(
        {"kind": "collectives", "sizes": {"model": model, "strategy": "fsdp"}}
    )
    assert isinstance(workload.sizes, ModelMessages)
    assert isinstance(workload.sizes.model.shape, LlamaShape)
    assert len(workload.sizes_bytes()) == 2
