"""Reads a prepared set with nothing but Python, by its documented form."""

import itertools
import json
import struct
from pathlib import Path


def samples_in(folder: Path) -> list[list[int]]:
    told = json.loads((folder / "set.json").read_text())
    tokens = (folder / "tokens.bin").read_bytes()
    size, letter = told["token_bytes"], {2: "H", 4: "I"}[told["token_bytes"]]
    ids = struct.unpack(f"<{len(tokens) // size}{letter}", tokens)
    raw = (folder / "offsets.bin").read_bytes()
    offsets = struct.unpack(f"<{len(raw) // 8}q", raw)
    assert offsets[0] == 0
    assert offsets[-1] == len(ids) == told["num_tokens"]
    return [list(ids[a:b]) for a, b in itertools.pairwise(offsets)]
