"""May this stand in a manifest? Who reads the namespace's jobs and ConfigMaps reads what is in it.

Values of secret variables never come here (specs/secrets/taking.py): this is for a secret that
stands where none belongs, in a word of a command, in another variable, in a file that is sent.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.secrets.names import is_secret, url_secrets
from broadgauge.specs.secrets.token_forms import holds_token

TO_A_SECRET = "`kubernetes: {secrets: {HF_TOKEN: {secret: NAME, key: KEY}}}`"
HINT = f"put it into a Secret: {TO_A_SECRET} gives ranks a variable, which the script reads"
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)")
_WITH_VALUE = re.compile(r"-{0,2}(?P<name>[A-Za-z][A-Za-z0-9_.-]*)=(?P<value>.*)", re.DOTALL)
_NO_SECRET = re.compile(r"|\$\{?\w+\}?|-.*|true|false|yes|no|none|null|<.*>", re.IGNORECASE)
"""Of an option's value: none, a variable's name, the next option, a word of no or yes, `<pad>`."""
_LOOKS_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{16,}")
"""Behind `--…key`, which may name a column, too."""
_FILE_NAMES = frozenset(
    {
        *(".netrc", ".pgpass", ".pypirc", ".npmrc", ".git-credentials", ".dockerconfigjson"),
        *("kubeconfig", "credentials", "secret", "secrets", "token", "password", "passwords"),
    }
)
_FILE_ENDINGS = frozenset(
    {".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".token"}
)
_SET_VARIABLE = re.compile(r"\s*(?:export\s+)?(?P<name>\w+)\s*[=:]\s*\S")
_CODE = frozenset({".py", ".sh"})
_SSH_KEY = re.compile(r"id_[a-z0-9_]+")


def refuse_secrets(case: Case, texts: Mapping[str, tuple[str, ...]]) -> None:
    """In what the manifests say of it. `texts`: the user's own words of its workload, by key.

    Raises InputError, without the value.
    """
    for key, words in texts.items():
        refuse_secret_words(f"workloads.{case.workload.name}.{key}", words)
    for name, value in case.environment.items():
        if isinstance(value, str) and (holds_token(value) or url_secrets(value)):
            raise InputError(
                f"environment.{name} holds a secret by its form, and a manifest would show it",
                hint=f"{TO_A_SECRET.replace('HF_TOKEN', name)} in its place",
            )


def refuse_secret_words(place: str, words: tuple[str, ...]) -> None:
    """Of a command, which stands at `place`. Raises InputError, without the value."""
    for i, word in enumerate(words):
        reason = _reason(words, i)
        if reason is not None:
            raise InputError(f"{place}[{i}] {reason}, and a manifest would show it", hint=HINT)
        if url_secrets(word):
            raise InputError(
                f"{place}[{i}] has credentials in a URL, and a manifest would show them",
                hint=HINT,
            )


def _reason(words: tuple[str, ...], i: int) -> str | None:
    """Why is this word taken for a secret? None: it is not."""
    if holds_token(words[i]):
        return "has the form of a token"
    whole = _WITH_VALUE.fullmatch(words[i])
    if whole is not None:
        return _value_reason(whole["name"], whole["value"])
    before = None if i == 0 else _OPTION.fullmatch(words[i - 1])
    return None if before is None else _value_reason(before["name"], words[i])


def _value_reason(option: str, value: str) -> str | None:
    if _NO_SECRET.fullmatch(value):
        return None
    name = option.rpartition(".")[2].replace("-", "_").lower()
    is_random = name.endswith("key") and _LOOKS_RANDOM.fullmatch(value)
    return f"is the value of `{option}`" if is_secret(name) or is_random else None


def refuse_secret_files(found: dict[str, bytes], asked_for: Iterable[str]) -> None:
    """Of what would be sent; `asked_for`: those that the user listed. Raises InputError."""
    listed = set(asked_for)
    for name, data in found.items():
        if name not in listed and keeps_secrets(name):
            raise InputError(
                f"a command names {name}, which by its name holds secrets, and is not sent",
                hint=f"{HINT}; where it holds none, list it: `kubernetes: {{files: [{name}]}}`",
            )
        text = data.decode(errors="replace")
        if keeps_secrets(name) and (variable := _secret_set_in(text)) is not None:
            raise InputError(
                f"kubernetes.files: {name} sets {variable}, and a ConfigMap would show it",
                hint=f"{TO_A_SECRET.replace('HF_TOKEN', variable)} in its place",
            )
        refuse_token("kubernetes.files", name, data)


def refuse_token(key: str, name: str, data: bytes) -> None:
    """In a file that is sent; `key` names it. Raises InputError."""
    if holds_token(data.decode(errors="replace")):
        raise InputError(
            f"{key}: {name} holds a token or a private key, and a ConfigMap would", hint=HINT
        )


def _secret_set_in(text: str) -> str | None:
    """Which secret has a value in a file of variables? None: none."""
    lines = map(_SET_VARIABLE.match, text.splitlines())
    return next((line["name"] for line in lines if line and is_secret(line["name"])), None)


def keeps_secrets(name: str) -> bool:
    """Do files of this name? `.env`, `secrets.json`, `id_ed25519`, `tls.key`; no scripts."""
    path = PurePosixPath(name.lower())
    if path.suffix in _CODE:
        return False
    if path.name in _FILE_NAMES or path.suffix in _FILE_ENDINGS or path.name.startswith(".env"):
        return True
    stem = path.name.strip(".").partition(".")[0].replace("-", "_")
    is_ssh_key = _SSH_KEY.fullmatch(path.name) is not None
    return is_ssh_key or stem in _FILE_NAMES or is_secret(stem)
