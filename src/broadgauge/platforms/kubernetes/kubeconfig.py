"""Which API server does the user's kubeconfig name, and as whom?

What is used of it is checked before a server is asked, and each error names file and key. None
repeats a value that may be a secret. Source of the keys: Kubernetes, "kubeconfig (v1)".
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, text
from broadgauge.specs.errors import InputError
from broadgauge.wording.near_words import did_you_mean

DEFAULT_FILE = "~/.kube/config"
DEFAULT_NAMESPACE = "default"
ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its service account. Source: Kubernetes, "Accessing the Kubernetes API from a
Pod"."""
HINT = "KUBECONFIG names the file; `kubectl get pods` must work with it first"
SERVICE_ACCOUNT = "(service account)"
"""The context of who has none: a pod that has no kubeconfig."""
_TEXTS = {
    "context": ("cluster", "user", "namespace"),
    "cluster": (
        *("server", "certificate-authority", "certificate-authority-data", "proxy-url"),
        "tls-server-name",
    ),
    "user": (
        *("token", "tokenFile", "username", "password", "client-certificate", "client-key"),
        *("client-certificate-data", "client-key-data"),
    ),
}
_SHOWN = re.compile(r"[\x21-\x3f\x41-\x7e]{1,80}")
"""A URL that may be repeated: without a user before an `@`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConfig:
    """One context of a kubeconfig, or a pod's own service account."""

    file: Path | None
    """None: it is a service account."""
    names: Mapping[str, str | None]
    """Of the context, its cluster and its user."""
    context: JsonMap
    """As in the file, as `cluster` and `user` are."""
    cluster: JsonMap
    user: JsonMap

    @property
    def name(self) -> str:
        """Of the context."""
        return self.names["context"] or ""

    @property
    def server(self) -> str:
        """Its URL."""
        return str(self.cluster["server"])

    @property
    def namespace(self) -> str:
        """Where the context points."""
        return text(self.context.get("namespace")) or DEFAULT_NAMESPACE

    @property
    def folder(self) -> Path:
        """What its relative paths are relative to."""
        return Path() if self.file is None else self.file.parent

    def place(self, kind: str, *keys: str) -> str:
        """`/home/ada/.kube/config: users[ada].user.token`."""
        file = self.file or "the pod's service account"
        return ".".join([f"{file}: {kind}s[{self.names[kind]}].{kind}", *keys])


def read_config(context: str | None) -> FoundConfig:
    """As kubectl chooses: a kubeconfig that is named or there goes before the pod's own service
    account. Raises InputError."""
    if context == SERVICE_ACCOUNT or (context is None and not _has_file()):
        found = _of_service_account()
        if found is not None:
            return found
    if context == SERVICE_ACCOUNT:
        raise InputError(
            "the run was begun in a pod, as its service account, and this is no pod",
            hint="go on with it in a pod of that cluster",
        )
    return _from_file(context)


def _has_file() -> bool:
    return bool(os.environ.get("KUBECONFIG")) or _path().exists()


def _of_service_account() -> FoundConfig | None:
    """None: this is no pod, or one without a token. Raises InputError."""
    token, authority = ACCOUNT_FOLDER / "token", ACCOUNT_FOLDER / "ca.crt"
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{each}") for each in ("HOST", "PORT"))
    if not token.exists():
        return None
    try:
        namespace = (ACCOUNT_FOLDER / "namespace").read_text().strip()
    except (OSError, ValueError) as error:
        raise InputError(f"this pod's service account can't be used: {error}") from error
    if not host or not port:
        raise InputError("this pod has a service account, and no KUBERNETES_SERVICE_HOST, _PORT")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return FoundConfig(
        file=None,
        names={"context": SERVICE_ACCOUNT, "cluster": SERVICE_ACCOUNT, "user": SERVICE_ACCOUNT},
        context={"namespace": namespace},
        cluster={"server": server, "certificate-authority": str(authority)},
        user={"tokenFile": str(token)},
    )


def _path() -> Path:
    named = os.environ.get("KUBECONFIG") or DEFAULT_FILE
    return Path(os.path.expanduser(named))  # noqa: PTH111  does not raise where there is no home


def _from_file(wanted: str | None) -> FoundConfig:
    path = _path()
    data = _data(path, _read(path))
    contexts, clusters, users = (_named(path, data, kind) for kind in _TEXTS)
    name = wanted if wanted is not None else data.get("current-context")
    if name is None or name == "":
        raise InputError(
            f"{path}: current-context: your kubeconfig has no current context",
            hint="`kubectl config use-context …` makes another one the current one",
        )
    if not isinstance(name, str):
        raise _no_text(f"{path}: current-context")
    _check_is_there(f"{path}: contexts", name, contexts)
    context = contexts[name]
    _check_texts(f"{path}: contexts[{name}].context", "context", context)
    cluster, user = text(context.get("cluster")), text(context.get("user"))
    if cluster is None:
        place = f"{path}: contexts[{name}].context.cluster"
        raise InputError(f"{place}: it names no cluster", hint=HINT)
    _check_is_there(f"{path}: clusters", cluster, clusters)
    if user is not None:
        _check_is_there(f"{path}: users", user, users)
    found = FoundConfig(
        file=path,
        names={"context": name, "cluster": cluster, "user": user},
        context=context,
        cluster=clusters[cluster],
        user={} if user is None else users[user],
    )
    _check_texts(found.place("cluster"), "cluster", found.cluster)
    _check_texts(found.place("user"), "user", found.user)
    _check_url(found.place("cluster", "server"), found.cluster.get("server"))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        several = os.pathsep in str(path)
        hint = "give one file: `kubectl config view --flatten > FILE`" if several else HINT
        raise InputError(f"there is no kubeconfig {path}", hint=hint) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: this kubeconfig is no text in UTF-8", hint=HINT) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: this kubeconfig can't be read: {reason}", hint=HINT) from error


def _data(path: Path, content: str) -> JsonMap:
    """The reader's own words are left out, also as a cause: they quote the text."""
    reader = YAML(typ="safe", pure=True)
    reader.allow_duplicate_keys = True
    place = f"{path}"
    try:
        found = reader.load(content)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place += "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
    except (YAMLError, ValueError, TypeError, RecursionError, OverflowError):
        pass
    else:
        if found is None:
            raise InputError(f"{path}: this kubeconfig is empty", hint=HINT)
        if not isinstance(found, dict):
            raise InputError(
                f"{path}: a kubeconfig is a mapping, and this is {_kind(found)}", hint=HINT
            )
        return found
    raise InputError(f"{place}: this kubeconfig is no YAML that can be read", hint=HINT)


def _named(path: Path, data: JsonMap, kind: str) -> dict[str, JsonMap]:
    """By name, of `contexts`, `clusters` and `users`."""
    key = f"{kind}s"
    listed = data.get(key)
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise InputError(f"{path}: {key}: a list is expected, not {_kind(listed)}", hint=HINT)
    found: dict[str, JsonMap] = {}
    for number, each in enumerate(listed):
        name = text(mapping(each).get("name"))
        if name is None:
            raise InputError(f"{path}: {key}[{number}]: it has no name", hint=HINT)
        inner = mapping(each).get(kind)
        if inner is not None and not isinstance(inner, dict):
            place = f"{path}: {key}[{name}].{kind}"
            raise InputError(f"{place}: a mapping is expected, not {_kind(inner)}", hint=HINT)
        found.setdefault(name, inner or {})  # of several the first, as kubectl has it
    return found


def _check_is_there(place: str, name: str, known: dict[str, JsonMap]) -> None:
    if name not in known:
        raise InputError(
            f"{place}: there is none of the name {name!r}",
            hint=did_you_mean(name, known) or "the file has none at all",
        )


def _check_texts(place: str, kind: str, found: JsonMap) -> None:
    for key in _TEXTS[kind]:
        if found.get(key) is not None and not isinstance(found[key], str):
            raise _no_text(f"{place}.{key}")


def _check_url(place: str, url: object) -> None:
    if not is_url(url):
        shown = f" `{url}`" if isinstance(url, str) and _SHOWN.fullmatch(url) else ""
        raise InputError(
            f"{place}:{shown or ' it'} is no URL of a server",
            hint="as in https://api.example.org:6443",
        )
    if "@" in str(url):
        raise InputError(
            f"{place}: a user stands in it", hint="`username` and `password` are keys of `users`"
        )


def is_url(url: object) -> bool:
    """Of http or https, with a host and a port that can be."""
    if not isinstance(url, str) or not re.fullmatch(r"[\x21-\x7e]+", url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def _no_text(place: str) -> InputError:
    return InputError(f"{place}: a text is expected", hint="put it in quotes")


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else "a number or a word"
