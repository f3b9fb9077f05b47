"""A model with random weights and tokenised conversations, on disk, as InstructLab's command wants.

python write_model.py --model granite-3.1-8b --num_layers 2 --out /tmp/granite

`model/` has weights, configuration and tokenizer, `data.jsonl` what InstructLab's preprocessing
makes of conversations: `input_ids`, `labels` (what the user said counts for nothing), `len`.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from shapes import SHAPES, config_of, describe, place_of, random_model, tokenizer_of

from messages import messages_of, open_r1_rows

IGNORED = -100
"""A label that counts for nothing. Source: torch.nn.functional.cross_entropy, `ignore_index`."""


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--model", default="granite-3.1-8b", choices=SHAPES)
    add("--toy", action="store_true", help="narrow layers, for CPUs")
    add("--num_layers", type=int, help="fewer of the same shape")
    add("--vocabulary", type=int, help="fewer rows of the embedding")
    add("--out", type=Path, required=True)
    add("--samples", type=int, default=96)
    add("--mean_length", type=int, default=1483, help="tokens of a sample, within a half")
    add("--seed", type=int, default=42)
    return parser.parse_args()


def samples_of(options: argparse.Namespace, tokenizer: Any) -> Iterator[dict[str, Any]]:
    """Each of several problems, one after the other, until it is as long as was drawn."""
    draw = random.Random(options.seed)
    rows = open_r1_rows(options.samples * options.mean_length, options.seed)
    for _ in range(options.samples):
        length = draw.randint(options.mean_length // 2, options.mean_length * 3 // 2)
        ids: list[int] = []
        labels: list[int] = []
        while len(ids) < length:
            for message in messages_of(next(rows)):
                text = tokenizer.apply_chat_template([message], tokenize=False)
                words = tokenizer(text, add_special_tokens=False)["input_ids"]
                ids += words
                is_asked = message["role"] == "user"
                labels += [IGNORED] * len(words) if is_asked else words
        yield {"input_ids": ids[:length], "labels": labels[:length], "len": length}


def main() -> None:
    options = read_options()
    config = config_of(
        options.model, toy=options.toy, layers=options.num_layers, vocabulary=options.vocabulary
    )
    with place_of(config):
        model = random_model(config, dtype=torch.bfloat16, attention=None, seed=options.seed)
    tokenizer = tokenizer_of(None)
    model.save_pretrained(options.out / "model")
    tokenizer.save_pretrained(options.out / "model")
    lengths = []
    with (options.out / "data.jsonl").open("w") as file:
        for sample in samples_of(options, tokenizer):
            lengths.append(sample["len"])
            print(json.dumps(sample), file=file)
    print(f"{describe(config, options.model, toy=options.toy)}, {model.num_parameters():,} of them")
    print(f"{len(lengths)} samples of {sum(lengths) / len(lengths):,.0f} tokens on average")


if __name__ == "__main__":
    main()
