"""Gemma 3 12B or gpt-oss-120b under FSDP2 through Accelerate, on conversations as Open-R1 has them.

torchrun accelerate_fsdp.py --model gemma-3-12b --steps 80

Settings are those of the article's Accelerate configuration. A step is timed twice, as its script
does (forward and backward pass alone, the device not waited for) and whole, from the end of the one
before: data, optimizer and all. Weights are random and conversations made up unless they are given.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from accelerate import (
    Accelerator,
    DistributedType,
    FullyShardedDataParallelPlugin,
    init_empty_weights,
)
from accelerate.utils import set_seed
from datasets import Dataset
from printing import LAUNCHED_S, awaited_s, refuse_silent_ddp, say
from shapes import (
    LAYER_CLASSES,
    SHAPES,
    config_of,
    describe,
    place_of,
    random_model,
    tokenizer_of,
)
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

from messages import load_rows, messages_of, open_r1_rows

IGNORED = -100
"""A label that counts for nothing. Source: torch.nn.functional.cross_entropy, `ignore_index`."""


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--model", default="gemma-3-12b", help=f"{', '.join(SHAPES)}; or real weights' path or id")
    add("--layer_class", help="what FSDP wraps, of real weights: Gemma3DecoderLayer")
    add("--toy", action="store_true", help="narrow layers, for CPUs")
    add("--num_layers", type=int, help="fewer of the same shape")
    add("--num_experts", type=int, help="fewer in each layer, of the same shape")
    add("--vocabulary", type=int, help="fewer rows of the embedding, such as the same share")
    add("--attention", default="eager", help="eager, as the article has it; or sdpa")
    add("--data", help="a folder of save_to_disk, a JSONL file or an id of the hub; else made up")
    add("--data_subset")
    add("--synthetic_samples", type=int, default=1000)
    add("--max_length", type=int, default=1024)
    add("--batch_per_rank", type=int, default=1)
    add("--accumulation", type=int, default=1)
    add("--steps", type=int, default=80)
    add("--learning_rate", type=float, default=2e-4)
    add("--no_activation_checkpointing", action="store_true")
    add("--checkpoint", help="where the sharded state is saved at the end; else not at all")
    add("--seed", type=int, default=42)
    add("--cpu", action="store_true")
    add("--allow_ddp_on_cpu", action="store_true", help="where Accelerate has no FSDP")
    return parser.parse_args()


def accelerator_of(options: argparse.Namespace) -> Accelerator:
    """Source: skypilot-org/skypilot, examples/training_network_storage_benchmarks, fsdp2.yaml."""
    layer_class = options.layer_class or LAYER_CLASSES.get(options.model)
    if layer_class is None:
        raise SystemExit(f"--layer_class: what does FSDP wrap in {options.model}?")
    # Which transformers reads when it loads real weights.
    os.environ |= {"ACCELERATE_USE_FSDP": "true", "FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=[layer_class],
        reshard_after_forward=True,
        cpu_ram_efficient_loading=True,
        state_dict_type="SHARDED_STATE_DICT",
        activation_checkpointing=not options.no_activation_checkpointing,
    )
    return Accelerator(
        cpu=options.cpu,
        mixed_precision="bf16",
        fsdp_plugin=plugin,
        gradient_accumulation_steps=options.accumulation,
    )


def model_of(options: argparse.Namespace, accelerator: Accelerator) -> Any:
    """In bfloat16; only rank 0 has weights before FSDP shards them."""
    if options.model not in SHAPES:
        say(model=options.model)
        return AutoModelForCausalLM.from_pretrained(
            options.model, attn_implementation=options.attention, dtype="auto", use_cache=False
        )
    config = config_of(
        options.model,
        toy=options.toy,
        layers=options.num_layers,
        experts=options.num_experts,
        vocabulary=options.vocabulary,
    )
    is_sharded = accelerator.distributed_type is DistributedType.FSDP
    is_empty = is_sharded and not accelerator.is_main_process
    # Buffers that no state has, such as a rotary embedding's frequencies, are sent to no rank.
    with init_empty_weights(include_buffers=False) if is_empty else place_of(config):
        model = random_model(
            config, dtype=torch.bfloat16, attention=options.attention, seed=options.seed
        )
    model.tie_weights()  # which empty ones are not
    name = describe(config, options.model, toy=options.toy)
    say(model=name, parameters=model.num_parameters())
    return model


def batches_of(options: argparse.Namespace, tokenizer: Any) -> DataLoader:
    if options.data is None:
        rows = Dataset.from_list(list(open_r1_rows(options.synthetic_samples, options.seed)))
        name = f"{len(rows)} made-up conversations in Open-R1's form, seed {options.seed}"
    else:
        rows, name = load_rows(options.data, options.data_subset, "train")
    say(data=name, samples=len(rows))

    def tokens_of(row: dict[str, Any]) -> dict[str, list[int]]:
        text = tokenizer.apply_chat_template(messages_of(row), tokenize=False)
        words = tokenizer(text, add_special_tokens=False)["input_ids"]
        return {"input_ids": words[: options.max_length]}

    def padded(each: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        lengths = [len(row["input_ids"]) for row in each]
        inputs_bt = torch.full((len(each), max(lengths)), tokenizer.pad_token_id)
        mask_bt = torch.zeros_like(inputs_bt)
        for i, row in enumerate(each):
            inputs_bt[i, : lengths[i]] = torch.tensor(row["input_ids"])
            mask_bt[i, : lengths[i]] = 1
        labels_bt = inputs_bt.masked_fill(mask_bt == 0, IGNORED)
        return {"input_ids": inputs_bt, "attention_mask": mask_bt, "labels": labels_bt}

    rows = rows.map(tokens_of, remove_columns=rows.column_names)
    return DataLoader(
        rows, batch_size=options.batch_per_rank, shuffle=True, drop_last=True, collate_fn=padded
    )


def endless(loader: DataLoader) -> Iterator[Any]:
    while True:
        yield from loader


def train(options: argparse.Namespace, accelerator: Accelerator, parts: Any) -> list[float]:
    """Seconds of each forward and backward pass; a line of JSON a step."""
    model, optimizer, loader = parts
    micro_batches, passes_s, tokens = endless(loader), [], torch.zeros(1)
    model.train()
    begin_s = awaited_s(accelerator.device)
    for step in range(1, options.steps + 1):
        tokens, pass_s = torch.zeros(1, device=accelerator.device), 0.0
        for _ in range(options.accumulation):
            batch = next(micro_batches)
            tokens += batch["attention_mask"].sum()
            begin_pass_s = time.perf_counter()
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                pass_s += time.perf_counter() - begin_pass_s
                optimizer.step()
                optimizer.zero_grad()
        tokens = accelerator.reduce(tokens)
        loss_value = accelerator.reduce(loss.detach(), reduction="mean").item()
        now_s = awaited_s(accelerator.device)
        step_s, begin_s = now_s - begin_s, now_s
        passes_s.append(pass_s)
        say(
            step=step,
            loss=loss_value,
            step_time_s=step_s,
            training_step_s=pass_s,
            tokens_per_s=tokens.item() / step_s,
            elapsed_s=time.time() - LAUNCHED_S,
        )
    return passes_s


def run(options: argparse.Namespace, accelerator: Accelerator) -> None:
    refuse_silent_ddp(accelerator, wants_fsdp=True, is_allowed=options.allow_ddp_on_cpu)
    begin_s = time.time()
    tokenizer = tokenizer_of(None if options.model in SHAPES else options.model)
    loader = batches_of(options, tokenizer)
    begin_load_s = time.time()
    model = model_of(options, accelerator)
    # FSDP2 replaces parameters, so the optimizer is prepared in the same call.
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    whole = sum(each.numel() for each in model.parameters())
    local = sum(getattr(each, "_local_tensor", each).numel() for each in model.parameters())
    say(parameters=whole, parameters_of_this_rank=local)
    if accelerator.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()  # rank 0 had the whole model
    begin_train_s = time.time()
    passes_s = train(options, accelerator, (model, optimizer, loader))
    end_train_s = time.time()
    if options.checkpoint is not None:
        accelerator.save_state(options.checkpoint)
    end_s = time.time()
    has_gpu = accelerator.device.type == "cuda"
    say(
        steps=options.steps,
        mean_training_step_s=statistics.fmean(passes_s),
        fastest_training_step_s=min(passes_s),
        slowest_training_step_s=max(passes_s),
        start_up_time_s=begin_s - LAUNCHED_S,
        data_time_s=begin_load_s - begin_s,
        model_load_time_s=begin_train_s - begin_load_s,
        training_time_s=end_train_s - begin_train_s,
        checkpoint_time_s=end_s - end_train_s,
        completion_time_s=end_s - LAUNCHED_S,
        peak_memory_bytes=torch.cuda.max_memory_allocated() if has_gpu else None,
    )


def main() -> None:
    options = read_options()
    set_seed(options.seed)
    accelerator = accelerator_of(options)
    run(options, accelerator)
    accelerator.end_training()


if __name__ == "__main__":
    main()
