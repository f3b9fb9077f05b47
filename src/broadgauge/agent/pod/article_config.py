"""Which arguments and variables does the published `config.json` give torchrun?

The article's script runs `torchrun --node_rank $RANK --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT` and
behind it the unquoted output of

    jq -r '. | to_entries | .[] | ("--" + .key + " " + (.value | tostring))' | sed "s/ true//"

so keys keep their order, each is followed by its value as jq prints it, `true` is a bare flag,
`false` and `null` are words, and the shell splits the lines at spaces. Source: "Network performance
in distributed training: Maximizing GPU utilization on OpenShift" (October 2025), "torchrun launch
command"; its English text cuts the line, its Korean one has it whole. Not in the article, but in
the published script of its authors (openshift-psap/topsail, run_ilab.sh): NCCL_SOCKET_NTHREADS is
taken out of the arguments and set as a variable.

Where versions of jq differ (1.0, more than 17 digits) numbers are those of jq 1.6, which has
doubles. Words with `*` or `?` are refused: the shell would look for files of such names. Lists
are let through, as `[…]` stands for names of one character only.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePosixPath

VARIABLES = ("NCCL_SOCKET_NTHREADS",)
OF_THE_LAUNCH = ("nnodes", "nproc_per_node", "module")
"""torchrun's own: they stand before the script's."""
_BLANKS = re.compile(r"[ \t\n]+")
"""The shell's IFS, unless it is set."""
_GLOB = re.compile(r"[*?]")
_ALONE = " true"


class ArticleConfigError(ValueError):
    """The file can't be read as the article's script reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleConfig:
    """One `config.json`."""

    arguments: tuple[str, ...]
    """Behind `torchrun`'s own two: `--nnodes`, `8`, …"""
    variables: Mapping[str, str]
    num_nodes: int | None
    """None: `nnodes` is not there, or no number."""
    ranks_per_node: int | None
    command: tuple[str, ...] | None
    """What torchrun is to run, from `-m` or the script's name on: `-m`,
    `instructlab.training.main_ds`, `--model_name_or_path`, … None: it names no `module`."""
    script_arguments: tuple[str, ...]
    """Those that are none of torchrun's."""
    paths: tuple[str, ...]
    """Values that are absolute paths, which must be mounted, in order."""

    def launch(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """The whole command as the article's script starts it. Raises ArticleConfigError."""
        missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in environ]
        if missing:
            raise ArticleConfigError(f"the launch has no {', '.join(missing)}")
        endpoint = f"{environ['MASTER_ADDR']}:{environ['MASTER_PORT']}"
        own = ("--node_rank", environ["RANK"], "--rdzv_endpoint", endpoint)
        return ("torchrun", *own, *self.arguments)


def read_config(text: str) -> ArticleConfig:
    """Raises ArticleConfigError."""
    try:
        told = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ArticleConfigError(f"config.json is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise ArticleConfigError("config.json holds no object")
    variables = {name: _to_string(told.pop(name)) for name in VARIABLES if name in told}
    return ArticleConfig(
        arguments=tuple(_arguments(told)),
        variables=variables,
        num_nodes=_count(told.get("nnodes")),
        ranks_per_node=_count(told.get("nproc_per_node")),
        command=_command(told),
        script_arguments=tuple(
            _arguments({key: told[key] for key in told if key not in OF_THE_LAUNCH})
        ),
        paths=tuple(value for value in told.values() if _is_path(value)),
    )


def _arguments(fields: Mapping[str, object]) -> Iterator[str]:
    for key, value in fields.items():
        lines = f"--{key} {_to_string(value)}".split("\n")
        text = "\n".join(line.replace(_ALONE, "", 1) for line in lines)
        for word in filter(None, _BLANKS.split(text)):
            if _GLOB.search(word):
                raise ArticleConfigError(
                    f"config.json, {key}: the shell would look for files named {word!r}"
                )
            yield word


def _command(fields: Mapping[str, object]) -> tuple[str, ...] | None:
    """torchrun's `--module` is a flag, and what follows it the module's name: what stands behind
    is the module's. Source: torch.distributed.run, options `--module` and `training_script`."""
    module = fields.get("module")
    if not isinstance(module, str) or not module:
        return None
    names = list(fields)
    behind = {name: fields[name] for name in names[names.index("module") + 1 :]}
    return ("-m", *filter(None, _BLANKS.split(module)), *_arguments(behind))


def _to_string(value: object) -> str:
    """jq's `tostring`."""
    return value if isinstance(value, str) else _dumped(value)


def _dumped(value: object) -> str:
    if isinstance(value, dict):
        inner = (f"{json.dumps(k, ensure_ascii=False)}:{_dumped(v)}" for k, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """The shortest digits of a double; with an exponent below 0.0001, or with more than 15 zeros.

    Source: jq 1.6, src/jv_dtoa.c, jvp_dtoa_fmt.
    """
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise ArticleConfigError("config.json: a number is too large")
    sign, digits, exponent = Decimal(repr(double)).normalize().as_tuple()
    assert isinstance(exponent, int)
    shown, point = "".join(map(str, digits)), len(digits) + exponent
    minus = "-" if sign else ""
    if not double:
        return f"{minus}0"
    if point <= -4 or point > len(shown) + 15:
        tail = f".{shown[1:]}" if len(shown) > 1 else ""
        return f"{minus}{shown[0]}{tail}e{point - 1:+03d}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{shown}"
    tail = f".{shown[point:]}" if len(shown) > point else ""
    return f"{minus}{shown[:point].ljust(point, '0')}{tail}"


def _count(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and value > 0 else None


def _is_path(value: object) -> bool:
    return isinstance(value, str) and PurePosixPath(value).is_absolute()


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is no number of JSON")
