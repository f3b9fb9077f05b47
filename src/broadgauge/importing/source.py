"""Which bytes is it, and what text? A file that a person names, compressed or not."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from broadgauge.doctor.log.files import READ_ERRORS, STDIN, open_sources
from broadgauge.specs.errors import InputError
from broadgauge.specs.secrets.names import MASK, is_secret, without_credentials
from broadgauge.specs.units import show_size

MOST_BYTES = 512 * 2**20
"""Of the text, unpacked."""
_BINARY_HEAD = 8192
_JSON_VARIABLE = re.compile(r'"([A-Za-z_][A-Za-z0-9_]*)=((?:[^"\\]|\\.)+)"')
_PLAIN_VARIABLE = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)=([^\s\"',;]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file as it was found."""

    name: str
    """As the user wrote it; of a folder's file its path."""
    text: str
    content: bytes
    """Of the file itself, compressed where it is."""
    changed_unix_s: float | None
    """When it was last written; None: a pipe."""

    @property
    def sha256(self) -> str:
        """Of its content, as hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def base_name(self) -> str:
        return "stdin" if self.name == STDIN else Path(self.name).name

    def without_secrets(self) -> bytes:
        """What may be kept of it: the file itself, or its text without the values of secrets."""
        masked = without_secrets(self.text)
        return self.content if masked == self.text else masked.encode()


def read_files(argument: str) -> tuple[SourceFile, ...]:
    """What the user names: a file, a folder of logs, or `-`. Raises InputError."""
    return tuple(_read(source.name, source.open) for source in open_sources([argument]))


def _read(name: str, opened: Callable[[], Iterator[bytes]]) -> SourceFile:
    content = _unpacked(name, opened)
    if b"\0" in content[:_BINARY_HEAD]:
        raise InputError(
            f"{name} is no text: a zero byte at {content.index(0)}",
            hint="a program's text or JSON output is imported",
        )
    if not content.strip():
        raise InputError(f"{name} is empty", hint="did the program write to another file?")
    is_pipe = name == STDIN
    try:
        raw = content if is_pipe else Path(name).read_bytes()
        changed_unix_s = None if is_pipe else Path(name).stat().st_mtime
    except OSError as error:
        raise InputError(f"{name} can't be read: {error.strerror or error}") from error
    return SourceFile(
        name=name,
        text=content.decode("utf-8", errors="replace").removeprefix("\ufeff"),
        content=raw,
        changed_unix_s=changed_unix_s,
    )


def _unpacked(name: str, opened: Callable[[], Iterator[bytes]]) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    try:
        for part in opened():
            size_bytes += len(part)
            if size_bytes > MOST_BYTES:
                raise InputError(
                    f"{name} holds more than {show_size(MOST_BYTES)}",
                    hint="import a part of it: `head -c 200M FILE > part`",
                )
            parts.append(part)
    except READ_ERRORS as error:
        raise InputError(
            f"{name} can't be read to its end: {error}", hint="is it cut, or still being written?"
        ) from error
    return b"".join(parts)


def without_secrets(text: str) -> str:
    """nccl-tests' JSON holds all variables of its shell: the values of secrets are masked."""
    masked = _JSON_VARIABLE.sub(_masked_in_json, text)
    return without_credentials(_PLAIN_VARIABLE.sub(_masked, masked))


def _masked_in_json(match: re.Match[str]) -> str:
    return json.dumps(f"{match[1]}={MASK}") if is_secret(match[1]) else match[0]


def _masked(match: re.Match[str]) -> str:
    return f"{match[1]}={MASK}" if is_secret(match[1]) else match[0]
