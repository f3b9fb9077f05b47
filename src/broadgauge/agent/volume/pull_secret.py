"""Who is this for a registry of containers? REGISTRY_AUTH holds a pull Secret's JSON.

Source: Kubernetes, Secrets of type kubernetes.io/dockerconfigjson, and "Interpretation of
config.json": names with a scheme, a version or a path; the longest path that fits counts.
"""

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

from broadgauge.agent.volume.telling import LastingError

HINT = (
    "`kubernetes: {secrets: {REGISTRY_AUTH: {secret: pull, key: .dockerconfigjson}}}` names a pull "
    "Secret"
)
DOCKER_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
"""One registry by several names."""


def credentials(host: str, name: str) -> str | None:
    """User and password as HTTP's Basic has them, for this repository; None: there are none. Raises
    LastingError, without the text, which is secret."""
    text = os.environ.get("REGISTRY_AUTH", "").strip()
    if not text:
        return None
    hosts = DOCKER_HUB if host in DOCKER_HUB else frozenset({host})
    try:
        known = [
            (len(path), each)
            for key, each in (json.loads(text).get("auths") or {}).items()
            for found, path in [_place(key)]
            if found in hosts and (not path or f"{name}/".startswith(f"{path}/"))
        ]
        return _basic(max(known, key=lambda each: each[0])[1]) if known else None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise LastingError(f"REGISTRY_AUTH is no JSON of a pull Secret: {HINT}") from None


def _place(key: str) -> tuple[str, str]:
    """Host, and the path of its repositories; empty: all."""
    host, _, path = key.partition("://")[2 if "://" in key else 0].strip("/").partition("/")
    return host, "" if path in {"v1", "v2"} else path


def _basic(entry: Mapping[str, Any]) -> str:
    """Raises KeyError."""
    if entry.get("auth"):
        return str(entry["auth"]).strip()
    return base64.b64encode(f"{entry['username']}:{entry['password']}".encode()).decode()
