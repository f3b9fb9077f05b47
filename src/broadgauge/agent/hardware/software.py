"""Which NCCL, which RDMA libraries, which network plugins would a process find here?

Nothing is loaded. NCCL's version is in the name of its file (`libnccl.so.2.28.9`), in the folder
that pip wrote beside it, or in its text (`NCCL version 2.28.9+cuda13.0`).
"""

import mmap
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from broadgauge.agent.hardware.tree import Tree
from broadgauge.messages.hardware import LibraryFacts

_SYSTEM = (
    *("/usr/local/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/lib64"),
    *("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"),
    *("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64"),
)
"""Where the loader looks on Debian, Fedora and in NVIDIA's images (ld.so(8), ld.so.conf)."""
NAMED = ("libibverbs.so.1", "librdmacm.so.1", "libmlx5.so.1", "libcuda.so.1")
_NCCL = "libnccl.so.2"
_PLUGIN = re.compile(r"libnccl-net[A-Za-z0-9_-]{0,40}\.so(\.[0-9.]+)?")
_IN_NAME = re.compile(r"libnccl\.so\.(\d+\.\d+\.\d+)")
_IN_FOLDER = re.compile(r"nvidia_nccl_cu\d+-(\d+\.\d+\.\d+)[.0-9]*\.dist-info")
_IN_TEXT = re.compile(rb"NCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})\+cuda")
_MOST_SEARCHED_BYTES = 1 << 30


def read_nccl(tree: Tree, environ: Mapping[str, str]) -> tuple[LibraryFacts, ...]:
    """Each file once: LD_LIBRARY_PATH, then this Python's packages, then the system's folders."""
    folders = [*_library_path(environ), *_package_folders(tree), *_SYSTEM]
    found: dict[Path, LibraryFacts] = {}
    for folder in folders:
        real = tree.real(folder, _NCCL)
        if real is None or real in found:
            continue
        path = f"{folder}/{_NCCL}"
        found[real] = LibraryFacts(name=_NCCL, path=path, version=_nccl_version(real))
    return tuple(found.values())


def read_libraries(tree: Tree, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Where each is; None: in none of the folders."""
    folders = [*_library_path(environ), *_SYSTEM]
    return {
        name: next((f"{each}/{name}" for each in folders if tree.exists(each, name)), None)
        for name in NAMED
    }


def read_network_plugins(tree: Tree, environ: Mapping[str, str]) -> tuple[LibraryFacts, ...]:
    """NCCL opens libnccl-net.so, or libnccl-net-NAME.so for NCCL_NET_PLUGIN=NAME."""
    found: dict[Path, LibraryFacts] = {}
    for folder in (*_library_path(environ), *_SYSTEM):
        for name in tree.names(folder):
            real = tree.real(folder, name) if _PLUGIN.fullmatch(name) else None
            if real is not None and real not in found:
                found[real] = LibraryFacts(name=name, path=f"{folder}/{name}")
    return tuple(found.values())


def _library_path(environ: Mapping[str, str]) -> list[str]:
    parts = environ.get("LD_LIBRARY_PATH", "").split(":")
    return [part.rstrip("/") for part in parts if part.startswith("/") and "\0" not in part]


def _package_folders(tree: Tree) -> Iterator[str]:
    if tree.is_live:
        yield from (f"{each}/nvidia/nccl/lib" for each in sys.path if each.endswith("-packages"))


def _nccl_version(real: Path) -> str | None:
    match = _IN_NAME.fullmatch(real.name)
    if match is not None:
        return match[1]
    with suppress(OSError):
        if real.parts[-4:-1] == ("nvidia", "nccl", "lib"):
            names = (each.name for each in real.parents[3].iterdir())
            folders = map(_IN_FOLDER.fullmatch, names)
            versions = sorted(match[1] for match in folders if match is not None)
            if len(versions) == 1:
                return versions[0]
    return _version_in_text(real)


def _version_in_text(real: Path) -> str | None:
    """Nothing but the first version that the file names; a file of 300 MB takes a second."""
    if not real.is_file():  # opening a named pipe would wait for its writer
        return None
    with suppress(OSError, ValueError), real.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not 0 < size <= _MOST_SEARCHED_BYTES:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            match = _IN_TEXT.search(data)
            return None if match is None else match[1].decode()
    return None
