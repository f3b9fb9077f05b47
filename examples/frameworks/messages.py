"""Which conversations are trained on? GSM8K's or Open-R1's from a disk or the hub, or made up.

Made-up ones have the same columns, so that one script reads both, and say so in what is printed.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, load_dataset, load_from_disk

NAMES = ("Ada", "Ben", "Chen", "Dara", "Eli", "Fatou", "Goro", "Hana")
THINGS = ("apples", "books", "coins", "eggs", "letters", "pens", "stamps", "tickets")


def gsm8k_rows(count: int, seed: int) -> Iterator[dict[str, str]]:
    """`question` and `answer`, whose last line is `#### number`, as GSM8K has them.

    Source: Cobbe et al. 2021 (Training verifiers to solve math word problems), section 2.
    """
    draw = random.Random(seed)
    for _ in range(count):
        name, thing = draw.choice(NAMES), draw.choice(THINGS)
        boxes, each, given = draw.randint(2, 12), draw.randint(3, 20), draw.randint(1, 6)
        whole = boxes * each
        yield {
            "question": f"{name} has {boxes} boxes with {each} {thing} each and gives {given} away."
            f" How many {thing} are left?",
            "answer": f"{boxes} boxes of {each} are <<{boxes}*{each}={whole}>>{whole} {thing}.\n"
            f"Without {given} there are <<{whole}-{given}={whole - given}>>{whole - given}.\n"
            f"#### {whole - given}",
        }


def messages_of(row: dict[str, Any]) -> list[dict[str, str]]:
    """Of a row of Open-R1's (`messages`), or of GSM8K's (`question`, `answer`)."""
    if "messages" in row:
        return [{"role": each["role"], "content": each["content"]} for each in row["messages"]]
    return [
        {"role": "user", "content": row["question"]},
        {"role": "assistant", "content": row["answer"]},
    ]


def open_r1_rows(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """`messages` of a user and an assistant who thinks aloud first, as Open-R1 has them."""
    for row in gsm8k_rows(count, seed):
        thoughts, _, result = row["answer"].partition("#### ")
        answer = f"<think>\n{thoughts.strip()}\n</think>\n\nThe answer is {result}."
        said = {"role": "user", "content": row["question"]}
        yield {"messages": [said, {"role": "assistant", "content": answer}]}


def load_rows(name: str, subset: str | None, split: str) -> tuple[Dataset, str]:
    """A folder of `save_to_disk`, a JSONL file, or a set of the hub; and what to call it."""
    path = Path(name)
    if path.is_file():
        return load_dataset("json", data_files=str(path), split="train"), f"{path.name}, JSONL"
    if path.is_dir() and ((path / "state.json").exists() or (path / "dataset_dict.json").exists()):
        stored = load_from_disk(name)
        rows = stored[split] if isinstance(stored, DatasetDict) else stored
        return rows, f"{path.name}/{split}, from disk"
    return load_dataset(name, subset, split=split), f"{name}/{subset or 'default'}/{split}"
