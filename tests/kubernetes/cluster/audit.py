"""What did a service account ask of the API server, as the server itself says it?

Its log has one line or two for each request of a service account, and none for anybody else's:
tests' users are service accounts, while controllers, kubelets and the admin are not. Source:
Kubernetes, "Auditing".
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request, at the moment when its answer began or was over."""

    id: str
    """The same at both moments."""
    words: str
    """Verb and resource: `get pods/log`; of what is no resource its path."""
    name: str
    """Empty: it names no object."""
    namespace: str
    is_allowed: bool
    is_over: bool


def asked_by(user: str, log: Path) -> list[Asked]:
    """In its order. What lasts, a watch or a log that is followed, is there when it begins and when
    it is over; all else once."""
    *lines, _ = log.read_text().split("\n")  # the last one is not whole
    events: Iterable[dict[str, Any]] = map(json.loads, lines)
    return [_asked(event) for event in events if event["user"]["username"] == user]


def count(asked: Iterable[Asked]) -> Counter[str]:
    """Of requests by their words, each once."""
    return Counter({each.id: each.words for each in asked}.values())


def most_at_once(asked: Iterable[Asked]) -> int:
    """Of requests that last."""
    are_open: set[str] = set()
    most = 0
    for each in asked:
        (are_open.discard if each.is_over else are_open.add)(each.id)
        most = max(most, len(are_open))
    return most


def _asked(event: dict[str, Any]) -> Asked:
    about = event.get("objectRef", {})
    what = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    return Asked(
        id=event["auditID"],
        words=f"{event['verb']} {what or event['requestURI']}",
        name=about.get("name", ""),
        namespace=about.get("namespace", ""),
        is_allowed=event["annotations"].get("authorization.k8s.io/decision") == "allow",
        is_over=event["stage"] != "ResponseStarted",
    )
