"""Llama 3.1 8B with LoRA on GSM8K through TRL's SFTTrainer, by the article's `config.yaml`.

torchrun trl_sft.py --config sft.yaml

The article's keys are read as they are; those that TRL and transformers have renamed since are
mapped, and each mapping is printed. Without `model_name_or_path` the weights are random, without
`dataset_name` the problems are made up. Each step's figures are one line of JSON of rank 0.
"""

import importlib.util
import sys
import time
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import yaml
from datasets import Dataset
from printing import LAUNCHED_S, awaited_s, refuse_silent_ddp, say
from shapes import SHAPES, config_of, describe, place_of, random_model, tokenizer_of
from transformers import TrainerCallback, set_seed
from trl import (
    ModelConfig,
    ScriptArguments,
    SFTConfig,
    SFTTrainer,
    TrlParser,
    get_peft_config,
    get_quantization_config,
)

from messages import gsm8k_rows, load_rows, messages_of

RENAMED = {
    "torch_dtype": "dtype",
    "use_liger": "use_liger_kernel",
    "max_seq_length": "max_length",
}
"""By the article's key. Source: TRL 0.15's configuration against 1.16's."""
FSDP_WORDS = {
    "full_shard": {"reshard_after_forward": True},
    "shard_grad_op": {"reshard_after_forward": False},
    "offload": {"cpu_offload": True},
    "auto_wrap": {},  # the default
}
"""What `fsdp: WORDS` was, as keys of `fsdp_config`. Source: transformers 5.24, training_args.py."""


@dataclass
class Choices:
    """What TRL has no key for."""

    random_weights: str = field(
        default="llama-3.1-8b", metadata={"help": "of which shape, without model_name_or_path"}
    )
    toy: bool = field(default=False, metadata={"help": "narrow layers, for CPUs"})
    num_layers: int | None = field(default=None, metadata={"help": "fewer of the same shape"})
    vocabulary: int | None = field(default=None, metadata={"help": "fewer rows of the embedding"})
    synthetic_samples: int = field(
        default=7473, metadata={"help": "without dataset_name; GSM8K has 7,473 to train on"}
    )
    allow_ddp_on_cpu: bool = field(
        default=False, metadata={"help": "train by DDP where Accelerate has no FSDP"}
    )


def mapped(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The configuration under today's keys, and what was changed, in words."""
    told, changes = dict(config), []
    for old, new in RENAMED.items():
        if old in told:
            told[new] = told.pop(old)
            changes.append(f"{old} is now {new}")
    settings = dict(told.get("fsdp_config") or {})
    words = told.get("fsdp")
    if isinstance(words, str) and all(word in FSDP_WORDS for word in words.split()):
        for word in words.split():
            settings = FSDP_WORDS[word] | settings
        told |= {"fsdp": bool(words), "fsdp_config": settings}
        changes.append(f"fsdp: {words} is now fsdp: true with fsdp_config: {settings}")
    if settings.get("activation_checkpointing") and "gradient_checkpointing" not in told:
        told["gradient_checkpointing"] = False
        changes.append("gradient_checkpointing is false, since FSDP checkpoints activations")
    return told, changes


def read_arguments(words: list[str]) -> tuple[Any, ...]:
    """ScriptArguments, SFTConfig, ModelConfig, Choices. Words of the command line win."""
    parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig, Choices))
    renamed = {f"--{old}": f"--{new}" for old, new in RENAMED.items()}
    parts = (word.split("=", 1) if word.startswith("--") else [word] for word in words)
    words = [renamed.get(word, word) for word in chain.from_iterable(parts)]
    changes: list[str] = []
    if "--config" in words:
        at = words.index("--config")
        _, path = words[at : at + 2]
        del words[at : at + 2]
        config, changes = mapped(yaml.safe_load(Path(path).read_text()))
        left = parser.set_defaults_with_config(**config)
        if left:
            raise SystemExit(f"{path}: unknown keys: {' '.join(left[::2])}")
    parsed = parser.parse_args_into_dataclasses(args=words)
    for change in changes:
        say(mapping=change)
    return parsed


def refuse_missing_kernels(training: SFTConfig, model: ModelConfig) -> None:
    wanted = {
        "flash_attn": (model.attn_implementation or "").startswith("flash_attention"),
        "liger_kernel": bool(training.use_liger_kernel),
        "bitsandbytes": model.load_in_4bit or model.load_in_8bit,
    }
    for package, is_wanted in wanted.items():
        if is_wanted and importlib.util.find_spec(package) is None:
            raise SystemExit(
                f"the configuration asks for {package}, which is not installed; "
                "--attn_implementation sdpa, --use_liger_kernel false and --load_in_4bit false "
                "do without"
            )


class TimedTrainer(SFTTrainer):  # type: ignore[misc]
    """Adds up what evaluations and checkpoints take; times training_step as the fourth article's
    script does, without waiting for the device."""

    training_step_s = 0.0
    evaluation_s = 0.0
    checkpoint_s = 0.0

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        begin_s = time.perf_counter()
        loss = super().training_step(*args, **kwargs)
        self.training_step_s += time.perf_counter() - begin_s
        return loss

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        begin_s = awaited_s(self.args.device)
        metrics = super().evaluate(*args, **kwargs)
        self.evaluation_s += awaited_s(self.args.device) - begin_s
        return metrics

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        begin_s = awaited_s(self.args.device)
        saved = super()._save_checkpoint(*args, **kwargs)
        self.checkpoint_s += awaited_s(self.args.device) - begin_s
        return saved


class StepLines(TrainerCallback):  # type: ignore[misc]
    """One line of JSON a step: the whole step, from the end of the one before, data included."""

    def __init__(self) -> None:
        self.trainer: TimedTrainer | None = None
        self._begin_s = 0.0
        self._step_s = self._num_tokens = 0.0
        self.num_steps = 0

    def on_epoch_begin(self, args: Any, *_: Any, **__: Any) -> None:
        self._begin_s = awaited_s(args.device)

    on_evaluate = on_save = on_epoch_begin
    """Neither is a part of the next step."""

    def on_step_end(self, args: Any, *_: Any, **__: Any) -> None:
        now_s = awaited_s(args.device)
        self._step_s, self._begin_s = now_s - self._begin_s, now_s
        self.num_steps += 1

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if logs is None or "loss" not in logs:
            return
        assert self.trainer is not None
        tokens, self._num_tokens = logs["num_tokens"] - self._num_tokens, logs["num_tokens"]
        step_s, self.trainer.training_step_s = self.trainer.training_step_s, 0.0
        if state.is_world_process_zero:
            say(
                step=state.global_step,
                epoch=round(logs["epoch"], 4),
                loss=logs["loss"],
                step_time_s=self._step_s,
                training_step_s=step_s,
                tokens_per_s=tokens / self._step_s,
                elapsed_s=time.time() - LAUNCHED_S,
            )


def datasets_of(script: Any, training: SFTConfig, choices: Choices, tokenizer: Any) -> Any:
    """Training set, evaluation set or None, each through the chat template as `text`."""

    def rows(split: str, count: int, seed: int) -> Dataset:
        if script.dataset_name is None:
            made = Dataset.from_list(list(gsm8k_rows(count, seed)))
            name = f"{count} made-up problems in GSM8K's form, seed {seed}"
        else:
            made, name = load_rows(script.dataset_name, script.dataset_config, split)
        say(data=name, samples=len(made), split=split)
        return made.map(templated, remove_columns=made.column_names)

    def templated(row: dict[str, Any]) -> dict[str, str]:
        return {"text": tokenizer.apply_chat_template(messages_of(row), tokenize=False)}

    train = rows(script.dataset_train_split, choices.synthetic_samples, training.seed)
    if training.eval_strategy == "no":
        return train, None
    # GSM8K's test set is 1,319 problems to 7,473.
    num_test = max(1, choices.synthetic_samples * 1319 // 7473)
    return train, rows(script.dataset_test_split, num_test, training.seed + 1)


def model_of(model: ModelConfig, training: SFTConfig, choices: Choices) -> dict[str, Any]:
    """What SFTTrainer is given: the name of real weights, or a model with random ones."""
    if model.model_name_or_path is not None:
        quantization = get_quantization_config(model)
        training.model_init_kwargs = {
            "revision": model.model_revision,
            "attn_implementation": model.attn_implementation,
            "dtype": model.dtype,
            "use_cache": False,
        }
        say(model=model.model_name_or_path)
        return {"model": model.model_name_or_path, "quantization_config": quantization}
    if model.load_in_4bit or model.load_in_8bit:
        raise SystemExit("random weights can't be quantised: give model_name_or_path")
    if choices.random_weights not in SHAPES:
        raise SystemExit(f"--random_weights: one of {', '.join(SHAPES)}")
    config = config_of(
        choices.random_weights,
        toy=choices.toy,
        layers=choices.num_layers,
        vocabulary=choices.vocabulary,
    )
    with place_of(config):
        made = random_model(
            config,
            dtype=torch.float32 if model.dtype in (None, "auto") else getattr(torch, model.dtype),
            attention=model.attn_implementation,
            seed=training.seed,
        )
    name = describe(config, choices.random_weights, toy=choices.toy)
    say(model=name, parameters=made.num_parameters())
    return {"model": made}


def main() -> None:
    script, training, model, choices = read_arguments(sys.argv[1:])
    refuse_missing_kernels(training, model)
    set_seed(training.seed)
    tokenizer = tokenizer_of(model.model_name_or_path)
    train_rows, test_rows = datasets_of(script, training, choices, tokenizer)
    begin_s = time.time()
    lines = StepLines()
    trainer = TimedTrainer(
        **model_of(model, training, choices),
        args=training,
        train_dataset=train_rows,
        eval_dataset=test_rows,
        peft_config=get_peft_config(model),
        processing_class=tokenizer,
        callbacks=[lines],
    )
    lines.trainer = trainer
    trained = sum(each.numel() for each in trainer.model.parameters() if each.requires_grad)
    say(parameters_trained=trained)
    refuse_silent_ddp(
        trainer.accelerator, wants_fsdp=bool(training.fsdp), is_allowed=choices.allow_ddp_on_cpu
    )
    load_s, begin_train_s = time.time() - begin_s, time.time()
    resume = training.resume_from_checkpoint
    trainer.train(resume_from_checkpoint=True if resume == "true" else resume)
    train_s = time.time() - begin_train_s
    trainer.save_model(training.output_dir)
    end_s = time.time()
    say(
        start_up_time_s=begin_s - LAUNCHED_S,
        model_load_time_s=load_s,
        training_time_s=train_s - trainer.evaluation_s - trainer.checkpoint_s,
        evaluation_time_s=trainer.evaluation_s,
        checkpoint_time_s=trainer.checkpoint_s + end_s - begin_train_s - train_s,
        completion_time_s=end_s - LAUNCHED_S,
        steps=lines.num_steps,
    )


if __name__ == "__main__":
    main()
