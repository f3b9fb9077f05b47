"""How do a leader and two agents measure a network between them that was there before?

    leader                     the agent that listens            the agent that calls
      │ ── listen_on_link ────────▶ │                                  │
      │ ◀─ listens_on_link ──────── │ where                            │
      │ ── call_on_link ───────────────────────────────────────────▶ │
      │                             │ ◀═══ streams, or a byte there ═══ │
      │ ◀─ link_probed ──────────── │ ◀── link_probed: what each saw ── │

One measurement at a time. Each agent measures in a child with a limit, and says what went wrong.
The next order ends a child that still waits.
"""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProbe:
    """What is to be measured."""

    number: int
    """Of the question: answers have it."""
    key: str = field(repr=False)
    """What each connection begins with, so that nobody else's is counted."""
    num_streams: int
    """At once, over the listening agent's interfaces in turn; 0: how long one byte's way is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where an agent listens."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOnLink:
    """Listen on the interfaces of the launch's network, for a bounded time."""

    type: Literal["listen_on_link"] = "listen_on_link"
    probe: LinkProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOnLink:
    """Another agent listens there: send to it, for a bounded time."""

    type: Literal["call_on_link"] = "call_on_link"
    probe: LinkProbe
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListensOnLink:
    type: Literal["listens_on_link"] = "listens_on_link"
    number: int
    endpoints: tuple[Endpoint, ...]
    """One an interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProbed:
    """What one side found; the other side's figures are its own to say."""

    type: Literal["link_probed"] = "link_probed"
    number: int
    trouble: str | None = None
    """Why nothing was found; None: all went well."""
    stream_gbps: float | None = None
    """Of all streams, on the wire, headers counted, as the side that receives counts it."""
    round_trip_s: float | None = None
    """As the side that asks measures it."""
    congestion_control: str | None = None
    """TCP's, of the side that sends."""
