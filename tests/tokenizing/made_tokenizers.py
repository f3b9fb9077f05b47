"""Makes small tokenizers, as files of Hugging Face's library."""

import json
from pathlib import Path
from typing import Any

import pytest

WORDS = ("[UNK]", "<s>", "</s>", "a", "b", "c", "d", "<|im_start|>", "<|im_end|>", "user", "bot")


def word_tokenizer(folder: Path, *, adds_start: bool = False, truncates: bool = False) -> Path:
    """A word is a token; ids are places in WORDS. Skips the test where the library is missing."""
    pytest.importorskip("tokenizers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if adds_start:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
    if truncates:
        tokenizer.enable_truncation(3)
        tokenizer.enable_padding(length=8)
    folder.mkdir(exist_ok=True, parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def say(folder: Path, **settings: Any) -> None:
    """What tokenizer_config.json beside it says."""
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
