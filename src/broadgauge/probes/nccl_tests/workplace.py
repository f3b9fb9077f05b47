"""Where do the programs of one trial find the stand-in, each other, and a place for their JSON?

In a folder beside the launch's logs, which all nodes of one machine see. It is made by rank 0 and
gone with the trial; after a kill it stays in the run folder, not in /tmp.
"""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from broadgauge.messages.rank import COMMAND_FD_VARIABLE, RESULT_FD_VARIABLE
from broadgauge.probes.nccl_tests.standin import LIBRARY, build_library
from broadgauge.probes.trace_place import own_log

SOCKET = "socket"
_NOT_FOR_A_CHILD = (COMMAND_FD_VARIABLE, RESULT_FD_VARIABLE, "NCCL_TESTS_SPLIT")
_NCCL_LOG = "NCCL_DEBUG_FILE"


@contextmanager
def workplace(environment: Mapping[str, str]) -> Iterator[Path]:
    """Rank 0's: a folder with the stand-in in it. Raises RefusedError where it can't be built."""
    log = own_log()
    folder = None if log is None else log.parent
    made = Path(tempfile.mkdtemp(prefix="nccl-tests.", dir=folder))
    try:
        build_library(made, environment)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def child_environment(environment: Mapping[str, str], local_rank: int) -> dict[str, str]:
    """A rank's variables, and what makes the program a part of the same job.

    The paths are relative to the workplace, where it runs: LD_PRELOAD takes no spaces or colons,
    a Unix socket's path is short. NCCL is the one that torch brings, unless LD_LIBRARY_PATH
    leads to another, so that both engines measure the same library. Its log gets a file of its
    own: NCCL would cut torch's. Source: nccl-tests, src/common.cu (NCCL_TESTS_DEVICE); ld.so(8).
    """
    kept = {n: v for n, v in environment.items() if n not in _NOT_FOR_A_CHILD}
    preloaded = f"./{LIBRARY} {kept.get('LD_PRELOAD', '')}".strip()
    libraries = [kept.get("LD_LIBRARY_PATH", ""), *map(str, _torch_s_libraries())]
    variables = kept | {
        "LD_PRELOAD": preloaded,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
        "BROADGAUGE_STANDIN_SOCKET": SOCKET,
        "NCCL_TESTS_DEVICE": str(local_rank),
    }
    if _NCCL_LOG in kept:
        log = Path(kept[_NCCL_LOG])
        variables[_NCCL_LOG] = str(log.with_name(f"{log.stem}-tests{log.suffix}"))
    return variables


def _torch_s_libraries() -> list[Path]:
    """Where the wheels of torch keep NCCL and CUDA's runtime; none: it uses the system's."""
    spec = importlib.util.find_spec("nvidia")
    roots = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [
        library.parent
        for root in roots
        for name in ("libnccl.so.2", "libcudart.so.*")
        for library in sorted(Path(root).glob(f"*/lib/{name}"))
    ]
    return list(dict.fromkeys(found))
