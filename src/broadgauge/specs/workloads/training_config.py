"""Which of torchrun's words does a training's `config.json` become?

The article "Network performance in distributed training: Maximizing GPU utilization on OpenShift"
(October 2025, "torchrun launch command") gives torchrun its own two words (node and rendezvous) and
behind them, unquoted, what jq and sed make of the file: of each key, in the file's order, `--key`
and the value as jq's `tostring` has it, where ` true` is taken out. So `true` is a bare flag,
`false` and `null` are words, and the shell splits what has blanks. The article's English text cuts
that line, its Korean one has it whole.

Where versions of jq differ (1.0, more than 17 digits) numbers are those of jq 1.6, which has
doubles. Words with `*` or `?` are refused: the shell would look for files of such names. Lists are
let through, as `[…]` stands for names of one character only.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from broadgauge.specs.base import Spec
from broadgauge.specs.secrets.names import is_secret, url_secrets
from broadgauge.specs.secrets.token_forms import holds_token

MOST_BYTES = 1 << 20
MODULE = "module"
MAX_BATCH_LEN = "max_batch_len"
OF_THE_CASE = ("nnodes", "nproc_per_node")
_BLANKS = re.compile(r"[ \t\n]+")
"""The shell's IFS, unless it is set."""
_GLOB = re.compile(r"[*?]")
_ALONE = " true"


class TrainingConfigError(ValueError):
    """The file is none that the article's script could start a training with."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class TrainingConfig(Spec):
    """A training's `config.json`, as it was read when the experiment was."""

    file: str
    """As the experiment names it."""
    module: str | None = None
    """What torchrun runs, unless `command` says it; null: the file does not say."""
    arguments: tuple[str, ...] = ()
    """The script's, in the file's order."""
    nnodes: str | None = None
    """As the file has it; the cases have their own number of nodes. null: it does not say."""
    nproc_per_node: str | None = None
    """As the file has it; the cases have their own number of ranks a node. null: it does not say.
    """

    @property
    def shape_words(self) -> str:
        """`nnodes 8 and nproc_per_node 2`: what the file says of them, for people."""
        told = {"nnodes": self.nnodes, "nproc_per_node": self.nproc_per_node}
        return " and ".join(f"{key} {value}" for key, value in told.items() if value is not None)


def parse_training_config(
    text: str, file: str, *, max_batch_len: int | None = None, names_module: bool
) -> tuple[TrainingConfig, int | None]:
    """What the file says, with this `max_batch_len` in the place of its own; and which one holds.

    `names_module`: nothing else says what torchrun runs. Raises TrainingConfigError.
    """
    told = _object(text, file)
    _refuse_models(told, file)
    module = _module(told, file, is_wanted=names_module)
    of_script = {k: v for k, v in told.items() if k not in (*OF_THE_CASE, MODULE)}
    if max_batch_len is not None:
        of_script[MAX_BATCH_LEN] = max_batch_len
    config = TrainingConfig(
        file=file,
        module=module,
        arguments=tuple(_arguments(of_script, file)),
        **{key: _to_string(told[key], file, key) for key in OF_THE_CASE if key in told},
    )
    return config, _max_batch_len(of_script, file)


def _object(text: str, file: str) -> dict[str, object]:
    try:
        told = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}:{error.colno}"
        raise TrainingConfigError(f"{place}: no JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise TrainingConfigError(f"{file}: no JSON: {error}") from error
    if not isinstance(told, dict):
        what = "a list" if isinstance(told, list) else f"`{_short(text.strip())}`"
        raise TrainingConfigError(
            f"{file}: {what}, and an object is wanted", '`{"module": "…", "max_batch_len": 35000}`'
        )
    return told


def _refuse_models(told: Mapping[str, object], file: str) -> None:
    """Hugging Face's `config.json` says what a model is, and has the same name."""
    is_model = "architectures" in told or (
        "model_type" in told and ("hidden_size" in told or "transformers_version" in told)
    )
    if MODULE in told or not is_model:
        return
    named = told.get("architectures") or told.get("model_type")
    what = " ".join(map(str, named)) if isinstance(named, list) else named
    raise TrainingConfigError(
        f"{file}: a model's config.json ({_short(str(what))}), and no training's",
        "the training's has the keys that its script takes as options: `module`, `max_batch_len`, "
        "…; the model's folder is one of its values, such as `model_name_or_path`",
    )


def _module(told: Mapping[str, object], file: str, *, is_wanted: bool) -> str | None:
    if MODULE not in told:
        if is_wanted:
            raise TrainingConfigError(
                f"{file}: it names no `{MODULE}`, and there is no `command`",
                "`command: [train.py]` beside `config`: its keys become that script's arguments",
            )
        return None
    module = told[MODULE]
    if not isinstance(module, str) or not re.fullmatch(r"[A-Za-z_][\w.]*", module):
        raise TrainingConfigError(
            f"{file}: `{MODULE}` takes a Python module's name, not `{_short(_shown(module))}`",
            "`instructlab.training.main_ds`; a script's file goes into `command`",
        )
    before = [k for k in list(told)[: list(told).index(MODULE)] if k not in OF_THE_CASE]
    if is_wanted and before:
        raise TrainingConfigError(
            f"{file}: `{before[0]}` stands before `{MODULE}`, and would be torchrun's option",
            f"`{MODULE}` first: what stands behind it is the module's",
        )
    return module


def _arguments(fields: Mapping[str, object], file: str) -> Iterator[str]:
    for key, value in fields.items():
        text = _to_string(value, file, key)
        if _names_secret(key, value) or holds_token(f"{key} {text}") or url_secrets(text):
            shown = "a key" if holds_token(key) else f"`{key}`"
            raise TrainingConfigError(
                f"{file}: {shown} holds a secret, and every process list and record would show it",
                "a variable that the script reads: `environment: {NAME: {from_environment: true}}`",
            )
        lines = f"--{key} {text}".split("\n")
        for word in _BLANKS.split("\n".join(line.replace(_ALONE, "", 1) for line in lines)):
            if _GLOB.search(word):
                raise TrainingConfigError(
                    f"{file}: `{key}`: the article's shell would look for files named `{word}`",
                    "a name without `*` and `?`",
                )
            if "\0" in word or _is_half_a_character(word):
                raise TrainingConfigError(f"{file}: `{key}`: no argument can hold this character")
            if word:
                yield word


def _names_secret(key: str, value: object) -> bool:
    """By its name, at any depth; what is empty, true, false or null is none."""
    if isinstance(value, dict):
        return any(_names_secret(inner, each) for inner, each in value.items())
    if isinstance(value, list):
        return any(_names_secret(key, each) for each in value)
    return is_secret(key) and not isinstance(value, bool) and value not in (None, "")


def _is_half_a_character(text: str) -> bool:
    """JSON can write one of UTF-16's surrogates alone."""
    return any("\ud800" <= each <= "\udfff" for each in text)


def _max_batch_len(fields: Mapping[str, object], file: str) -> int | None:
    if MAX_BATCH_LEN not in fields:
        return None
    text = _to_string(fields[MAX_BATCH_LEN], file, MAX_BATCH_LEN)
    if not re.fullmatch(r"[0-9]{1,15}", text) or not int(text):
        raise TrainingConfigError(
            f"{file}: `{MAX_BATCH_LEN}` takes a number of tokens, not `{_short(text)}`", "`35000`"
        )
    return int(text)


def _to_string(value: object, file: str, key: str) -> str:
    """jq's `tostring`."""
    try:
        return value if isinstance(value, str) else _dumped(value)
    except OverflowError:
        raise TrainingConfigError(f"{file}: `{key}`: a number is too large") from None
    except RecursionError:
        raise TrainingConfigError(f"{file}: `{key}`: too deep") from None


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

    Source: jq 1.6, src/jv_dtoa.c, jvp_dtoa_fmt. Raises OverflowError.
    """
    double = float(value)
    if not math.isfinite(double):
        raise OverflowError
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


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def _refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is no number of JSON")
