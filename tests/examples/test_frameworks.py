"""Proves examples/frameworks/: each trains at toy size, and prints what its example reads.

A launch of two ranks takes some 15 s of core time, most of it imports: what can be seen in one is
looked for in one.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.merging.outcomes import make_case
from tests.probes.harness import COMMAND_WORKER, Ranks

from broadgauge.catalog.models import find_model
from broadgauge.merging.merge import MergedTrial, merge
from broadgauge.running.experiments import load
from broadgauge.specs.workload import CommandWorkload

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = EXAMPLES / "frameworks"
pytestmark = [pytest.mark.measuring, pytest.mark.shares_cores]

Trained = Callable[..., tuple[MergedTrial, str]]


@pytest.fixture
def train(tmp_path: Path) -> Trained:
    """Runs an example's command on two ranks, or another number, with words added to it, or with
    other words (`is_whole`)."""

    def run(
        example: str, *more: str, ranks: int = 2, is_whole: bool = False
    ) -> tuple[MergedTrial, str]:
        (workload, *_) = load(example, []).experiment.workloads
        assert isinstance(workload, CommandWorkload)
        places = {"/tmp/llama-lora-cpu-output": str(tmp_path / "out")}
        words = more if is_whole else (*workload.command, *more)
        update = {"command": words, "working_directory": str(EXAMPLES)}
        text = workload.model_copy(update=update).model_dump_json()
        for old, new in places.items():
            text = text.replace(old, new)
        own = CommandWorkload.model_validate_json(text)
        case = make_case(own, nodes=1, ranks_per_node=ranks)
        with Ranks(1, tmp_path, command=COMMAND_WORKER, is_forked=False) as started:
            outcome = started.run_trial(case, limit_s=250)
            logs = started.logs()
            assert outcome.error is None, logs
            return merge(case, outcome, None), logs

    return run


def said(logs: str, key: str) -> list[Any]:
    """What lines of JSON have under this key."""
    lines = (line[line.find("{") :] for line in logs.splitlines() if '{"' in line)
    objects = [json.loads(line) for line in lines if line.endswith("}") and f'"{key}"' in line]
    return [each[key] for each in objects if key in each]


@pytest.mark.slow
def test_trl_trains_by_the_articles_keys_and_goes_on_from_its_checkpoint(
    train: Trained, tmp_path: Path
) -> None:
    small = ("--synthetic_samples", "32")
    trial, logs = train("llama-lora-trl-cpu", *small, "--max_steps", "4", "--logging_steps", "1")
    # Warm-up is longer than this run.
    assert trial.error is not None, logs
    assert said(logs, "step") == [1, 2, 3, 4]
    mappings = said(logs, "mapping")
    assert [each.split(" is ")[0] for each in mappings] == [
        *("torch_dtype", "use_liger", "max_seq_length"),
        *("fsdp: full_shard auto_wrap", "gradient_checkpointing"),
    ]
    assert "32 made-up problems in GSM8K's form, seed 42" in said(logs, "data")
    assert said(logs, "model") == ["llama-3.1-8b, toy widths, 2 of 32 layers, random weights"]
    assert said(logs, "distributed_type") == ["MULTI_CPU"]
    # 16 ranks of LoRA: of q, k, v, o 16 * (128 + 80 + 80 + 128), of the MLP 3 * 16 * 288, 2 layers.
    assert said(logs, "parameters_trained") == [2 * 16 * (128 + 80 + 80 + 128 + 3 * 288)]
    (whole,) = said(logs, "completion_time_s")
    names = ("start_up", "model_load", "training", "evaluation", "checkpoint")
    parts = [said(logs, f"{name}_time_s")[0] for name in names]
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(whole, rel=0.02)
    out = tmp_path / "out"
    assert [path.name for path in out.glob("checkpoint-*")] == ["checkpoint-4"]

    more = (*small, "--max_steps", "12", "--resume_from_checkpoint", "true")
    trial, logs = train("llama-lora-trl-cpu", *more, ranks=1)
    assert trial.error is None, logs
    assert said(logs, "step") == list(range(5, 13))
    assert [path.name for path in out.glob("checkpoint-*")] == ["checkpoint-12"]
    assert trial.series["loss"] == tuple(said(logs, "loss")[5:])
    # TensorBoard's files of this command, not of the one before, in float32.
    assert trial.series["train_loss"] == pytest.approx(trial.series["loss"], rel=1e-5)
    assert len(trial.series["eval_loss"]) == len(set(said(logs, "step")) & {4, 8, 12}) + 1
    assert all(3 < loss < math.log(512) + 1 for loss in trial.series["eval_loss"])


@pytest.mark.thorough
def test_accelerate_trains_and_says_that_it_is_ddp(train: Trained) -> None:
    trial, logs = train("gemma-networks-cpu", "--steps", "8", "--synthetic_samples", "40")
    assert trial.error is None, logs
    assert said(logs, "distributed_type") == ["MULTI_CPU"]
    assert said(logs, "data") == ["40 made-up conversations in Open-R1's form, seed 42"]
    losses = said(logs, "loss")
    assert losses[-1] < losses[0] == pytest.approx(math.log(512), abs=0.2)
    for whole, alone in zip(
        trial.series["step_time_s"], trial.series["training_step_s"], strict=True
    ):
        assert 0 < alone < whole
    # DDP: each rank has all of it.
    assert said(logs, "parameters_of_this_rank") == said(logs, "parameters")[-1:]


def on_gloo(example: str) -> tuple[str, ...]:
    """The example's command with FSDP, and no leave to train without."""
    (workload, *_) = load(example, []).experiment.workloads
    assert isinstance(workload, CommandWorkload)
    words = (word for word in workload.command if word != "--allow_ddp_on_cpu")
    return (str(Path(__file__).with_name("on_gloo.py")), *words)


@pytest.mark.slow
def test_accelerate_shards_tied_weights_and_fills_ranks_that_have_none(
    train: Trained,
) -> None:
    """Gemma's: rank 1 has no weights until rank 0 sends them, and makes its own frequencies."""
    words = (*on_gloo("gemma-networks-cpu"), "--steps=8", "--vocabulary=448")
    trial, logs = train("gemma-networks-cpu", *words, is_whole=True)
    assert trial.error is None, logs
    assert said(logs, "distributed_type") == ["FSDP"]
    assert said(logs, "model") == [
        "gemma-3-12b, toy widths, 2 of 48 layers, 448 of 512 tokens, random weights"
    ]
    assert said(logs, "parameters_of_this_rank") == [said(logs, "parameters")[-1] / 2]
    losses = said(logs, "loss")
    assert losses[-1] < losses[0] == pytest.approx(math.log(448), abs=0.2)


@pytest.mark.thorough
def test_trl_shards_by_the_articles_keys(train: Trained) -> None:
    words = (*on_gloo("llama-lora-trl-cpu"), "--synthetic_samples=64", "--max_steps=8")
    trial, logs = train("llama-lora-trl-cpu", *words, is_whole=True)
    assert trial.error is None, logs
    assert said(logs, "distributed_type") == ["FSDP"]
    assert said(logs, "step") == list(range(1, 9))
    assert min(said(logs, "evaluation_time_s") + said(logs, "checkpoint_time_s")) > 0


@pytest.mark.slow
def test_lightning_counts_its_epochs_in_samples(train: Trained) -> None:
    small = ("--samples", "80", "--batch_per_rank", "4", "--seq_len", "32")
    trial, logs = train("gpt2-lightning-cpu", *small)
    assert trial.error is None, logs
    assert said(logs, "steps") == [10, 10]
    assert said(logs, "epoch") == [1, 2]
    assert trial.series["epoch2_time_s"] == (said(logs, "epoch_time_s")[1],)
    # The epoch's is the ranks' mean.
    assert sum(said(logs, "step_time_s")[10:]) <= trial.series["epoch2_time_s"][0] * 1.1
    assert f"| {trial.series['epoch2_time_s'][0]:,.2f} s |" in logs
    assert said(logs, "loss")[-1] < said(logs, "loss")[0]


@pytest.mark.slow
def test_instructlabs_command_takes_the_articles_words_and_needs_cuda(
    tmp_path: Path, scripts: None
) -> None:
    """The reason why it isn't trained by here; its console's line is what the example reads."""
    import torch
    from shapes import config_of, random_model, tokenizer_of

    if torch.cuda.is_available():
        pytest.skip("it trains where there are GPUs")
    config = config_of("llama-3.1-8b", toy=True, layers=1)
    model = random_model(config, dtype=torch.float32, attention=None, seed=1)
    model.save_pretrained(tmp_path / "model")
    tokenizer_of(None).save_pretrained(tmp_path / "model")
    (workload,) = load("granite-l40s-instructlab", []).experiment.workloads
    assert isinstance(workload, CommandWorkload)
    assert workload.config is not None
    told = json.loads((EXAMPLES / workload.config).read_text())
    told |= {"model_name_or_path": str(tmp_path / "model"), "output_dir": str(tmp_path / "out")}
    (tmp_path / "config.json").write_text(json.dumps(told))
    own = workload.model_copy(update={"config": str(tmp_path / "config.json")})
    case = make_case(own, nodes=1, ranks_per_node=1)
    with Ranks(1, tmp_path, command=COMMAND_WORKER, is_forked=False) as started:
        outcome = started.run_trial(case, limit_s=200)
        logs = started.logs()
    error = outcome.error
    assert error is not None, logs
    assert "unrecognized arguments" not in logs
    assert 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))' in logs
    assert "NVIDIA" in error.message or "CUDA" in error.message, error.message


def test_the_example_has_the_articles_config() -> None:
    from tests.agent.pod.test_article_config import PUBLISHED

    (workload,) = load("granite-l40s-instructlab", []).experiment.workloads
    assert isinstance(workload, CommandWorkload)
    assert workload.config is not None
    assert (EXAMPLES / workload.config).read_text() == PUBLISHED


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Their modules can be imported, and are gone afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    names = {path.stem for path in SCRIPTS.glob("*.py")} - before
    for name in names & set(sys.modules):
        del sys.modules[name]


@pytest.mark.slow
def test_shapes_have_as_many_parameters_as_the_models(scripts: None) -> None:
    import torch
    from shapes import SHAPES, config_of, random_model

    for name in SHAPES:
        published = find_model(name).published_params
        assert published is not None
        with torch.device("meta"):
            model = random_model(
                config_of(name, toy=False, layers=None),
                dtype=torch.bfloat16,
                attention="eager",
                seed=0,
            )
        assert model.num_parameters() == pytest.approx(published, rel=0.002), name
        part = config_of(name, toy=True, layers=None)
        whole = model.config
        assert part.num_hidden_layers == 2 < whole.num_hidden_layers
        ratio = "num_attention_heads", "num_key_value_heads"
        assert getattr(part, ratio[0]) / getattr(part, ratio[1]) == getattr(
            whole, ratio[0]
        ) / getattr(whole, ratio[1])
        assert part.intermediate_size / part.hidden_size == pytest.approx(
            whole.intermediate_size / whole.hidden_size
        )


@pytest.mark.slow
def test_lightnings_model_is_our_reference_model(scripts: None) -> None:
    import lightning_mingpt
    import torch
    from lightning_mingpt import MinGpt

    from broadgauge.messages.model_shape import GptShape
    from broadgauge.probes.training import data
    from broadgauge.probes.training.model import Gpt

    ours = Gpt(
        GptShape(layers=2, hidden=32, heads=4, vocabulary=65, seq_len=16, is_head_tied=False)
    )
    theirs = MinGpt(layers=2, hidden=32, heads=4, seq_len=16)
    theirs.load_state_dict(ours.state_dict())
    tokens_bt = torch.randint(65, (2, 17), generator=torch.Generator().manual_seed(1))
    words = tokens_bt[:, :-1], tokens_bt[:, 1:]
    assert theirs(*words).item() == pytest.approx(ours(*words).item(), abs=1e-6)
    for text in (bytes(range(200)) * 3 + b"eeettta", b"to be"):
        assert lightning_mingpt.as_characters(text, 65) == data.as_characters(text, 65)
    with torch.device("meta"):
        large = MinGpt(layers=36, hidden=1280, heads=20, seq_len=128)
    assert sum(each.numel() for each in large.parameters()) == 708_720_640


@pytest.mark.slow
def test_fsdp_that_is_none_is_refused(scripts: None) -> None:
    from accelerate import DistributedType
    from printing import refuse_silent_ddp

    def accelerator(kind: DistributedType) -> Any:
        device = SimpleNamespace(type="cpu")
        return SimpleNamespace(distributed_type=kind, num_processes=2, device=device)

    ddp = accelerator(DistributedType.MULTI_CPU)
    with pytest.raises(SystemExit, match="FSDP was asked for, and Accelerate trains by MULTI_CPU"):
        refuse_silent_ddp(ddp, wants_fsdp=True, is_allowed=False)
    refuse_silent_ddp(ddp, wants_fsdp=True, is_allowed=True)
    refuse_silent_ddp(ddp, wants_fsdp=False, is_allowed=False)
    refuse_silent_ddp(accelerator(DistributedType.FSDP), wants_fsdp=True, is_allowed=False)
