"""Which files are traces, and what are their bytes?"""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from broadgauge.specs.errors import InputError
from broadgauge.traces.reading.chunks import NotJsonError, TraceBytes

ENDINGS = (".json", ".json.gz")
_WRITTEN_BY_HANDLER = re.compile(r"^(?P<host>.+)_\d+\.\d+\.pt\.trace\.json(?:\.gz)?$")
"""Source: torch.profiler.tensorboard_trace_handler: host_pid.time.pt.trace.json."""
_RANK = re.compile(r"(?:rank|_r)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)


def trace_files(paths: Sequence[Path]) -> list[Path]:
    """The files that are meant: of a folder those in it whose names end as traces' do.

    Raises InputError.
    """
    found: list[Path] = []
    for path in paths:
        try:
            if not path.is_dir():
                found.append(path)
                continue
            inside = sorted(each for each in path.iterdir() if each.name.endswith(ENDINGS))
        except OSError as error:
            raise InputError(f"`{path}` can't be read: {error.strerror or error}") from error
        if not inside:
            raise InputError(
                f"no trace in `{path}`: no file ends with .json or .json.gz",
                hint="the folder that tensorboard_trace_handler or export_chrome_trace wrote to",
            )
        found += inside
    return list(dict.fromkeys(found))


def host_of(path: Path) -> str | None:
    """Where it was traced, as its name tells."""
    found = _WRITTEN_BY_HANDLER.match(path.name)
    return None if found is None else found["host"]


def rank_of(path: Path) -> int | None:
    """`rank3.json`, `trace_rank-3.json.gz`; None where its name does not tell."""
    found = _RANK.search(path.name)
    return None if found is None else int(found[1])


@contextmanager
def opened(path: Path) -> Iterator[TraceBytes]:
    """The bytes of a file, decompressed where it is gzip, whatever its name. Raises InputError."""
    try:
        with path.open("rb") as file:
            is_zipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if is_zipped:
                with gzip.open(file) as stream:
                    yield stream
            else:
                yield file
    except NotJsonError as error:
        raise not_a_trace(path, error) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"`{path}`: broken gzip: {error}", hint="copy it again: it is not whole"
        ) from error
    except OSError as error:
        raise InputError(f"`{path}` can't be read: {error.strerror or error}") from error


def not_a_trace(path: Path, error: NotJsonError) -> InputError:
    """One clear message for bytes that are none."""
    if "in the middle" in error.what:
        return InputError(
            f"`{path}` is cut off: {error.what}, at byte {error.at_byte}",
            hint="the job ended while the profiler wrote it: let export_chrome_trace return first",
        )
    return InputError(
        f"`{path}` is no profiler trace: {error.what}, at byte {error.at_byte}",
        hint="the JSON of torch.profiler's export_chrome_trace, plain or gzip",
    )
