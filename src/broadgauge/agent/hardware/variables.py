"""Which variables would NCCL, its plugins and torch read here, and where are they set?

Source: NVIDIA/nccl 2.30.7, src/misc/param.cc (initEnvFunc, setEnvFile): the environment counts
first, then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf; a line is NAME=VALUE, without
quotes, and `#` only at its begin is a comment.
"""

from collections.abc import Iterator, Mapping

from broadgauge.agent.hardware.tree import Tree
from broadgauge.messages.hardware import VariableFacts

PREFIXES = ("NCCL_", "TORCH_NCCL_", "OFI_NCCL_", "FI_", "GLOO_", "UCX_")
NAMES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS", "RDMAV_FORK_SAFE", "IBV_FORK_SAFE")
_SYSTEM_FILE = "/etc/nccl.conf"


def read_variables(tree: Tree, environ: Mapping[str, str]) -> tuple[VariableFacts, ...]:
    """In the order in which they count. Values are as they are: mask them before they are shown."""
    found = [
        VariableFacts(name=name, value=environ[name], place="environment")
        for name in sorted(environ)
        if name.startswith(PREFIXES) or name in NAMES
    ]
    home = environ.get("HOME", "")
    own = environ.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home else "")
    for file in (own, _SYSTEM_FILE):
        if file.startswith("/") and "\0" not in file:
            found.extend(_of_file(tree, file))
    return tuple(found)


def _of_file(tree: Tree, file: str) -> Iterator[VariableFacts]:
    for number, line in enumerate(tree.lines(file), start=1):
        name, equals, value = line.removesuffix("\r").partition("=")
        if equals and name and not line.startswith("#"):
            yield VariableFacts(name=name, value=value, place=f"{file}:{number}")
