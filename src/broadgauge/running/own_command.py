"""Which workload is a command line of one's own, as it is typed into a shell?

torchrun's own options that say how many ranks there are and where they meet are the experiment's
affair, so they are left out, and said. What the script is given stays as it is.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from broadgauge.specs.errors import InputError
from broadgauge.specs.secrets.names import is_secret, url_secrets
from broadgauge.specs.secrets.token_forms import holds_token

EXAMPLE = "--command 'torchrun train.py --epochs 1'"
_TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_ALONE = frozenset(("standalone", "virtual-local-rank"))
"""torchrun's options that take no value."""
_WITH_VALUE = frozenset(
    (
        *("nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"),
        *("max-restarts", "monitor-interval", "start-method", "event-log-handler", "role"),
        *("log-dir", "redirects", "tee", "local-ranks-filter", "duplicate-stdout-filters"),
        *("duplicate-stderr-filters", "node-rank", "master-addr", "master-port", "local-addr"),
        *("logs-specs", "numa-binding", "signals-to-handle"),
    )
)
"""Source: torch 2.11, torch/distributed/run.py, get_args_parser."""
_SHORT = {"r": "redirects", "t": "tee"}
_KEPT = {"m": "-m", "module": "-m", "no-python": "--no-python", "run-path": "--run-path"}
"""What the script is; it goes along."""
_OTHER_LAUNCHERS = ("accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "ray", "bash", "sh")
_STARTING_OTHERS = frozenset(
    (
        *("uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"),
        *("conda", "mamba", "micromamba", "env", "time", "timeout", "nohup", "nice", "sudo"),
        *("exec", "stdbuf", "taskset", "numactl", "nsys", "ncu", "strace"),
    )
)
_GOES_ON = "\\\n"
"""A backslash at the end of a line: a shell reads both lines as one."""
_HOME = re.compile(r"~(/.*)?", re.DOTALL)
_OF_A_SHELL = re.compile(r"\|\|?|&&?|;|[0-9]?>>?(&[0-9])?|<|[0-9]?>.+|.+;")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_COUNT = re.compile(r"[0-9]{1,4}")
"""Of ranks a node: far more than there can be."""
_PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommand:
    """What starts on every rank, and what was said of how many there are."""

    words: tuple[str, ...]
    """The script and its arguments, as torchrun takes them."""
    python: str | None = None
    """Which interpreter was named by its path; None: none."""
    environment: dict[str, str | None] = field(default_factory=dict)
    """Variables before the command; None: a secret, whose value is written nowhere."""
    ranks_per_node: int | None = None
    """None: not said, or not as a number."""
    left_out: tuple[str, ...] = ()
    """Options that the experiment takes the place of."""

    @property
    def title(self) -> str:
        """Of the script, without its folder or package: `train`."""
        script = _script(self.words)
        is_module = "-m" in self.words[: self.words.index(script)]
        return script.rpartition(".")[2] if is_module else PurePosixPath(script).stem


def read_command(text: str) -> OwnCommand:
    """Of a whole command line. Raises InputError."""
    words = _split(text)
    environment: dict[str, str | None] = {}
    while words and (assigned := _ASSIGNED.fullmatch(words[0])):
        name, value = assigned.groups()
        environment[name] = None if is_secret(name) else value
        words = words[1:]
    for word in (*words, *(value for value in environment.values() if value is not None)):
        _check_word(word)
    if not words or _is_no_script(words[0]):
        raise InputError("--command names no script", hint=EXAMPLE)
    found = _started(words)
    if _is_no_script(_script(found.words)):
        raise InputError("--command names no script", hint=EXAMPLE)
    return replace(found, environment=environment)


def _script(words: Sequence[str]) -> str:
    """The first word that says no more than what the script is; empty: there is none."""
    return next((word for word in words if word not in _KEPT.values()), "")


def _is_no_script(word: str) -> bool:
    return not word or word.startswith("-")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text.replace(_GOES_ON, ""))
    except ValueError as error:
        raise InputError(
            f"--command can't be split as a shell does: {str(error).lower()}", hint=EXAMPLE
        ) from None


def _check_word(word: str) -> None:
    """Raises InputError: no shell runs the command, and it is written into a file."""
    if _OF_A_SHELL.fullmatch(word):
        raise InputError(
            f"--command: `{word}` is for a shell, and no shell runs the command",
            hint="the command that starts the training, alone",
        )
    if "$" in word or "`" in word:
        raise InputError(
            f"--command: `{word}` would be filled in by a shell, and no shell runs the command",
            hint='with double quotes around the command your shell fills it in: --command "…"',
        )
    if _HOME.fullmatch(word):
        raise InputError(
            f"--command: `{word}` would be filled in by a shell, and no shell runs the command",
            hint="the whole path of the home folder, such as /home/me, in the place of `~`",
        )
    if holds_token(word) or url_secrets(word):
        raise InputError(
            "--command holds a secret, and the experiment would show it",
            hint="the script reads it from a variable: `environment: {HF_TOKEN: "
            "{from_environment: true}}`",
        )
    if not word.isprintable():
        raise InputError("--command holds a character that can't be printed", hint=EXAMPLE)


def _started(words: Sequence[str]) -> OwnCommand:
    """By torchrun, by Python, or by its own name."""
    first, rest = words[0], words[1:]
    name = PurePosixPath(first).name
    folder = first.removesuffix(name)
    if name in _OTHER_LAUNCHERS or name.endswith((".sh", ".bash", ".sbatch", ".slurm")):
        raise InputError(
            f"--command begins with `{first}`, and Broadgauge starts ranks by torchrun",
            hint=f"the script that its ranks run, with its arguments: {EXAMPLE}",
        )
    if name in _STARTING_OTHERS:
        raise InputError(
            f"--command begins with `{first}`, which starts another command",
            hint="that other command alone; Python of an environment is named by its path: "
            "--command '.venv/bin/python train.py'",
        )
    if name == "torchrun":
        return replace(_of_torchrun(rest), python=f"{folder}python" if folder else None)
    if not _PYTHON.fullmatch(name):
        return OwnCommand(words=tuple(words))
    while rest and rest[0] == "-u":  # ranks' output is unbuffered as it is
        rest = rest[1:]
    if rest[:1] == ["-m"] and rest[1:2] and rest[1] in _TORCHRUN_MODULES:
        found = _of_torchrun(rest[2:])
    elif rest[:1] == ["-m"] and rest[1:]:
        found = OwnCommand(words=tuple(rest))
    elif not rest or rest[0].startswith("-"):
        what = f"`{rest[0]}` is no script" if rest else "it names no script"
        raise InputError(f"--command begins with `{first}`, and {what}", hint=EXAMPLE)
    else:
        found = OwnCommand(words=tuple(rest))
    return replace(found, python=first if folder else None)


def _of_torchrun(words: Sequence[str]) -> OwnCommand:
    """torchrun's own options stand before the script. Raises InputError."""
    kept: list[str] = []
    left_out: list[str] = []
    ranks: int | None = None
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        name, has_value, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        name = _SHORT.get(name, name)
        at += 1
        if name in _KEPT:
            kept.append(_KEPT[name])
            continue
        if name in _WITH_VALUE and not has_value:
            value = words[at] if at < len(words) else ""
            at += 1
        elif name not in _ALONE and name not in _WITH_VALUE:
            raise InputError(f"--command: torchrun has no option `{word}`", hint=EXAMPLE)
        left_out.append(f"--{name}")
        if name == "nproc-per-node" and _COUNT.fullmatch(value):
            ranks = int(value)
    if at >= len(words):
        raise InputError("--command: torchrun is given no script", hint=EXAMPLE)
    return OwnCommand(
        words=(*kept, *words[at:]),
        ranks_per_node=ranks or None,
        left_out=tuple(dict.fromkeys(left_out)),
    )
