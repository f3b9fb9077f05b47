"""What is sent to a machine that has Python and nothing of ours? One zip file that Python runs.

It holds what runs there, as source. Equal sources give equal bytes, so its hash is its version.
A pod that nobody leads needs less of it, and of our workloads those of its case's kind. What pods
have is without docstrings and comments, since a ConfigMap holds 1 MiB, and one that `kubectl apply`
takes a quarter of it. Lines stay where they are: a traceback's are those of our sources.
"""

import ast
import io
import tokenize
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from broadgauge.messages.own_archive import version_of

PACKAGES = ("agent", "leader", "messages", "probes", "wording")
"""Of broadgauge; with what is in its `__init__.py`."""
_ALL_PODS = (
    *("agent/__init__.py", "agent/entry_point.py", "agent/netlink.py", "agent/pod"),
    *("agent/addresses.py", "agent/hardware", "agent/volume/__init__.py"),
    *("agent/volume/links.py", "agent/volume/telling.py", "agent/volume/wait.py"),
    *("messages", "wording", "probes/", "probes/collectives", "probes/training"),
)
POD_PARTS = (*_ALL_PODS, "probes/nccl_tests")
"""Of a job that is rendered: the entrypoint, what gives addresses, what waits for model and data,
and our own workloads but those of storages."""
STORAGE_POD_PARTS = (*_ALL_PODS, "probes/storage")
"""The same of a job whose workload is one of storages."""
RUN_POD_PARTS = (
    *("agent/__init__.py", "agent/entry_point.py", "agent/addresses.py", "agent/cores.py"),
    *("agent/facts.py", "agent/found_link.py", "agent/host_logs.py", "agent/in_pod.py"),
    *("agent/netlink.py", "agent/nvidia_smi.py", "agent/on_host.py", "agent/sides.py"),
    *("agent/streams.py", "agent/taken_cores.py"),
    *("agent/counters", "agent/emulated", "agent/hardware", "agent/pod"),
    *("agent/preflight", "agent/supervisor"),
    *("agent/volume/__init__.py", "agent/volume/links.py", "agent/volume/telling.py"),
    *("agent/volume/wait.py", *PACKAGES[1:]),
)
"""Of a run's job: an agent and its leader beside what a rendered job has."""
PREPARE_PARTS = (
    *("agent/__init__.py", "agent/entry_point.py", "agent/volume"),
    *("messages/__init__.py", "messages/codec.py", "messages/prepare_order.py"),
)
"""Of the Job that fills a volume."""
MAIN = (
    "import sys\n\nfrom broadgauge.agent.entry_point import main\n\nsys.exit(main(sys.argv[1:]))\n"
)
SUFFIXES = (".py", ".c", ".h")
"""The stand-in for MPI is compiled where nccl-tests runs."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip file can say: times of files don't count."""


@cache
def build(parts: tuple[str, ...] = PACKAGES) -> bytes:
    """The zip file of these folders and files of broadgauge; of `folder/` the files in it, and no
    folder of it."""
    root = Path(__file__).parents[1]
    sources = [path for part in parts for path in _files(root, part) if path.suffix in SUFFIXES]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, "__main__.py", MAIN.encode())
        for path in (root / "__init__.py", *sources):
            data = path.read_bytes()
            if parts in (POD_PARTS, STORAGE_POD_PARTS, RUN_POD_PARTS) and path.suffix == ".py":
                data = without_comments(without_docstrings(data))
            _add(archive, f"broadgauge/{path.relative_to(root).as_posix()}", data)
    return buffer.getvalue()


def _files(root: Path, part: str) -> list[Path]:
    path = root / part
    if part.endswith("/"):
        return sorted(each for each in path.iterdir() if each.is_file())
    return sorted(path.rglob("*")) if path.is_dir() else [path]


def without_docstrings(source: bytes) -> bytes:
    """And without those below fields and constants; as many lines as before."""
    lines = source.split(b"\n")
    for text in _lone_texts(ast.parse(source)):
        assert text.end_lineno is not None
        first, last = text.lineno - 1, text.end_lineno - 1
        kept = lines[first][: text.col_offset] + b'""' + lines[last][text.end_col_offset :]
        lines[first : last + 1] = [kept, *[b""] * (last - first)]
    return b"\n".join(lines)


def without_comments(source: bytes) -> bytes:
    """As many lines as before."""
    lines = source.split(b"\n")
    tokens = tokenize.tokenize(io.BytesIO(source).readline) if b"#" in source else ()
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start  # in characters
            lines[row - 1] = lines[row - 1].decode()[:column].rstrip().encode()
    return b"\n".join(lines)


def _lone_texts(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield node


@cache
def version(parts: tuple[str, ...] = PACKAGES) -> str:
    """As the programs in it say it."""
    return version_of(build(parts))


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)
