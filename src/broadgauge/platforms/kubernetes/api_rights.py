"""Is a refusal for want of rights one that passes? Not all of them last.

An API server that has just started says 403 to everybody until it has read roles and bindings. So
who was let in before is shut out only once that has lasted. Quotas, webhooks and pod security say
403, too, in other words, and mean it.
Source: kubernetes/kubernetes#121635; the authorizer's words: apiserver,
pkg/endpoints/handlers/responsewriters/errors.go, `User "…" cannot list resource "pods" …`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api_errors import ApiError

SHUT_OUT_LIMIT_S = waiting_limit_s(90.0)
"""From the first refusal in a row; roles are read within seconds, on a busy server within a minute.
"""
_AUTHORIZERS = " cannot "


@dataclass(slots=True)
class Rights:
    """Of one client, as far as the server has shown them, by kind of object and namespace."""

    _let_in: set[str] = field(default_factory=set)
    _shut_out_s: dict[str, float] = field(default_factory=dict)
    """Since when."""

    @contextmanager
    def used(self, what: str) -> Iterator[None]:
        """Around the look at an answer. Raises its ApiError, marked where it may pass."""
        try:
            yield
        except ApiError as error:
            if error.status == 403 and _AUTHORIZERS in error.message and what in self._let_in:
                since_s = self._shut_out_s.setdefault(what, time.monotonic())
                error.is_early = time.monotonic() - since_s < SHUT_OUT_LIMIT_S
            raise
        self._let_in.add(what)
        self._shut_out_s.pop(what, None)
