"""Which text does the training read, and which part of it does each rank see in each step?

Without a file of the user's: the sources of Python's standard library, which are on every machine
that has Python. Bytes are the tokens.
"""

import platform
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import RefusedError

MAX_TEXT_BYTES = 16 * 2**20
"""Of any text only so much is read, to keep the memory of many ranks on one machine small."""
NOT_LIBRARY = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    content: bytes
    description: str


def read_text(file: str | None) -> Text:
    """The user's file, or the standard library's sources. Raises RefusedError."""
    return _standard_library() if file is None else _user_file(Path(file))


def _user_file(path: Path) -> Text:
    try:
        with path.open("rb") as source:
            content = source.read(MAX_TEXT_BYTES)
    except OSError as error:
        raise RefusedError(f"the training text `{path}` can't be read: {error.strerror}") from error
    return Text(content=content, description=f"{path}, {len(content)} bytes")


def _standard_library() -> Text:
    """All .py files in the order of their paths, without tests, until MAX_TEXT_BYTES."""
    root = Path(sysconfig.get_path("stdlib"))
    parts: list[bytes] = []
    size = 0
    for path in sorted(root.rglob("*.py")):
        if NOT_LIBRARY.isdisjoint(path.relative_to(root).parts):
            parts.append(path.read_bytes())
            size += len(parts[-1])
        if size >= MAX_TEXT_BYTES:
            break
    content = b"".join(parts)[:MAX_TEXT_BYTES]
    version = platform.python_version()
    return Text(
        content=content,
        description=f"standard library of Python {version}: {len(parts)} files, "
        f"{len(content)} bytes",
    )


class Batches:
    """Where does each sequence of a step begin? Drawn for all ranks from the seed and the step.

    A rank takes its own rows of the global batch, so that N ranks of b sequences see in each step
    what one rank of N·b sequences sees.
    """

    def __init__(self, text: Text, seq_len: int, device: Any) -> None:
        if len(text.content) <= seq_len:
            raise RefusedError(
                f"the training text has {len(text.content)} bytes, too few for sequences of "
                f"{seq_len} ({text.description})"
            )
        self._bytes = torch.frombuffer(bytearray(text.content), dtype=torch.uint8).to(device)
        self._window = torch.arange(seq_len + 1, device=device)

    def draw(self, seed: int, step: int, per_rank: int, identity: RankIdentity) -> Any:
        """Tokens and the tokens that follow them: two int64[B, T]."""
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(
            len(self._bytes) - len(self._window) + 1,
            (identity.world_size, per_rank),
            generator=generator,
        )[identity.rank]
        rows = starts.to(self._bytes.device, non_blocking=True)[:, None] + self._window
        tokens = self._bytes[rows].long()
        return tokens[:, :-1], tokens[:, 1:]
