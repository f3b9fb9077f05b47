"""Which environment, command and arguments does a container get?

Sources: the Kubernetes API reference (EnvVar, EnvFromSource, Container.command, `$(VAR)`), and
the downward API's page on which fields may be named.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
FetchObject = Callable[[str, str], Json | None]
"""Of the pod's namespace: kind ("configmaps", "secrets") and name to the object, None if absent."""


class ConfigError(Exception):
    """A container can't be configured; the text is the message of CreateContainerConfigError."""


_REFERENCE = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_VARIABLE_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables in the place of `$(NAME)`; `$$` is a dollar sign, an unknown name stays."""

    def replaced(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(replaced, text)


def container_environment(container: Json, pod: Json, fetch: FetchObject) -> dict[str, str]:
    """All that `envFrom` and `env` say, later entries over earlier ones.

    Raises ConfigError with the kubelet's words where a reference that is not optional is missing.
    """
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        variables |= _from_whole(source, pod, fetch)
    for entry in container.get("env") or ():
        if "valueFrom" not in entry:
            variables[entry["name"]] = expand(entry.get("value") or "", variables)
            continue
        value = _from_reference(entry["valueFrom"], container, pod, fetch)
        if value is not None:
            variables[entry["name"]] = value
    return variables


def command_line(
    container: Json, variables: Mapping[str, str], image: tuple[Sequence[str], Sequence[str]]
) -> list[str]:
    """What is run? `image` is its entrypoint and command; a command of the spec replaces both."""
    entrypoint, default_arguments = image
    command = [expand(word, variables) for word in container.get("command") or ()]
    arguments = [expand(word, variables) for word in container.get("args") or ()]
    if command:
        return command + arguments
    return [*entrypoint, *(arguments or default_arguments)]


def _from_whole(source: Json, pod: Json, fetch: FetchObject) -> dict[str, str]:
    kind, reference = _which(source, {"configMapRef": "configmaps", "secretRef": "secrets"})
    found = fetch(kind, reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(_not_found(kind, reference["name"]))
    prefix = source.get("prefix") or ""
    named = {prefix + key: value for key, value in text_data(kind, found).items()}
    return {key: value for key, value in named.items() if _VARIABLE_NAME.fullmatch(key)}


def _from_reference(source: Json, container: Json, pod: Json, fetch: FetchObject) -> str | None:
    if "fieldRef" in source:
        return field_of_pod(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return resource_of_container(source["resourceFieldRef"], container, pod)
    kind, reference = _which(source, {"configMapKeyRef": "configmaps", "secretKeyRef": "secrets"})
    name, key = reference["name"], reference["key"]
    found = fetch(kind, name)
    if found is None:
        if reference.get("optional"):
            return None
        raise ConfigError(_not_found(kind, name))
    data = text_data(kind, found)
    if key in data:
        return data[key]
    if reference.get("optional"):
        return None
    word = "Secret" if kind == "secrets" else "ConfigMap"
    place = f"{pod['metadata']['namespace']}/{name}"
    raise ConfigError(f"couldn't find key {key} in {word} {place}")


def _which(source: Json, kinds: Mapping[str, str]) -> tuple[str, Json]:
    for field_name, kind in kinds.items():
        if field_name in source:
            return kind, source[field_name]
    raise ConfigError(f"invalid valueFrom or envFrom: {sorted(source)}")


def _not_found(kind: str, name: str) -> str:
    return f'{kind.removesuffix("s")} "{name}" not found'


def text_data(kind: str, found: Json) -> dict[str, str]:
    """Of a ConfigMap or Secret."""
    return {key: value.decode(errors="replace") for key, value in bytes_data(kind, found).items()}


def bytes_data(kind: str, found: Json) -> dict[str, bytes]:
    """All keys of a ConfigMap (data and binaryData) or Secret, as they are written to files."""
    if kind == "secrets":
        return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
    plain = {key: text.encode() for key, text in (found.get("data") or {}).items()}
    binary = found.get("binaryData") or {}
    return plain | {key: base64.b64decode(text) for key, text in binary.items()}


def field_of_pod(pod: Json, path: str) -> str:
    """What a fieldRef names: one of the fields that the downward API knows."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    plain = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": ",".join(entry["ip"] for entry in status.get("podIPs") or ()),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
    }
    if path in ("metadata.labels", "metadata.annotations"):
        return downward_lines(metadata.get(path.removeprefix("metadata.")) or {})
    if path not in plain:
        raise ConfigError(f"field label not supported: {path}")
    return plain[path]


def downward_lines(entries: Mapping[str, str]) -> str:
    """Labels or annotations as a downward API file has them: `key="value"`, sorted, Go-quoted."""
    return "\n".join(f"{key}={_go_quote(value)}" for key, value in sorted(entries.items()))


def _go_quote(text: str) -> str:
    """As Go's strconv.Quote does for text of printable characters and common escapes."""
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r",
             "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}  # fmt: skip
    return f'"{"".join(short.get(sign) or _go_sign(sign) for sign in text)}"'


def _go_sign(sign: str) -> str:
    code = ord(sign)
    if sign.isprintable():
        return sign
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SUFFIXES = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0,
    "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?([a-zA-Z]*)")


def quantity(text: str | float) -> float:
    """A Kubernetes quantity as a number: "1500m" is 1.5, "2Gi" is 2,147,483,648."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None or match[3] not in _SUFFIXES:
        raise ConfigError(f"{text!r} is no quantity")
    return float(match[1]) * 10.0 ** int(match[2] or 0) * _SUFFIXES[match[3]]


def resource_of_container(reference: Json, container: Json, pod: Json) -> str:
    """A resourceFieldRef: rounded up to a multiple of its divisor, 1 if it has none."""
    if name := reference.get("containerName"):
        everyone = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
        container = next(one for one in everyone if one["name"] == name)
    side, _, resource = reference["resource"].partition(".")
    amounts = (container.get("resources") or {}).get(side) or {}
    value = quantity(amounts.get(resource, "0"))
    divisor = quantity(reference.get("divisor") or "1") or 1.0
    return str(math.ceil(value / divisor - 1e-9))
