"""What does a network between nodes carry? By name, or by transport, rate and number of NICs."""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self, get_args

from pydantic import Field, model_validator

from broadgauge.catalog.entries import Entry, Part, Spread, find_entry, plain
from broadgauge.catalog.loading import shipped_data, shipped_entries
from broadgauge.messages.vocabulary import Transport
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.transports import RDMA

_WRITTEN = re.compile(r"(?P<transport>[a-z][a-z-]*?)-(?P<rate>\d+(\.\d+)?)(?P<unit>g|t)(bit|bps)?")
_TIMES = re.compile(r"(?P<name>.+?)-?[*x×]-?(?P<nics>\d+)")
_TURNED = re.compile(r"(?P<nics>\d+)[*x×](?P<name>.+)")
MOST_NOMINAL_GBPS = 100_000
"""Of one NIC that is written: a hundred times what can be bought, to ask what it would bring."""
_OF_PRIOR = ("typical_ratio", "typical_gbyte_per_s", "latency_s", "needs", "fitted_on")


class RingRate(Spread):
    """What one communicator carries over one NIC, for NICs of up to so much."""

    up_to_gbps: float = Field(gt=0)


class TransportPrior(Entry):
    """What is known of a way of sending, whatever the NIC: one entry of transports.yaml."""

    typical_ratio: Spread | None = None
    typical_gbyte_per_s: Spread | None = None
    rings: tuple[RingRate, ...] = ()
    healthy_ratio: Spread | None = None
    """Of nominal: busbw of a large all-reduce over the NICs that it uses, with nothing amiss and
    GPUDirect RDMA. None: nobody has published enough."""
    latency_s: Spread
    needs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if (self.typical_ratio is None) == (self.typical_gbyte_per_s is None):
            raise ValueError("either `typical_ratio` of nominal or `typical_gbyte_per_s`")
        return self

    def ring(self, nominal_gbps: float | None) -> Spread | None:
        """Of one communicator over one NIC of this rate; of the fastest NIC where it is unknown."""
        by_rate = sorted(self.rings, key=lambda ring: ring.up_to_gbps)
        for ring in by_rate:
            if nominal_gbps is not None and nominal_gbps <= ring.up_to_gbps:
                return ring
        return by_rate[-1] if by_rate else None


class Carried(Part):
    """What a whole node sends at a time, one direction, in collectives of large messages."""

    gbyte_per_s: float
    low_gbyte_per_s: float
    high_gbyte_per_s: float


class NetworkClass(Entry):
    """One network of networks.yaml, with what its transport's prior says where it says nothing."""

    transport: Transport
    nominal_gbps: float | None = Field(default=None, gt=0)
    """Of one NIC, one direction. None: not known, or nothing that collectives would notice."""
    nics: int = Field(default=1, ge=1)
    """Of one node."""
    typical_ratio: Spread | None = None
    """What collectives carry of nominal."""
    typical_gbyte_per_s: Spread | None = None
    """What collectives carry over one NIC, where nominal does not say it."""
    ring_gbyte_per_s: Spread | None = None
    """What one communicator carries over one NIC; None: all that the NIC carries."""
    latency_s: Spread
    needs: tuple[str, ...] = ()

    @property
    def is_rdma(self) -> bool:
        return self.transport in RDMA

    @property
    def node_nominal_gbps(self) -> float | None:
        """Of all NICs of a node."""
        return None if self.nominal_gbps is None else self.nominal_gbps * self.nics

    def carried(self, communicators: int = 1) -> Carried:
        """What do collectives of large messages carry, while so many communicators work at once?

        NICs that share a limit in the hypervisor or in the kernel's encapsulation may carry less
        than their number promises: `low` is of one NIC there.
        """
        return Carried(
            gbyte_per_s=self._carried("value", communicators, self.nics),
            low_gbyte_per_s=self._carried("low", communicators, self.nics if self.is_rdma else 1),
            high_gbyte_per_s=self._carried("high", communicators, self.nics),
        )

    def _carried(self, bound: str, communicators: int, nics: int) -> float:
        limits = [] if self.nominal_gbps is None else [self.nominal_gbps / 8]
        if self.typical_gbyte_per_s is not None:
            limits.append(getattr(self.typical_gbyte_per_s, bound))
        if self.typical_ratio is not None and self.nominal_gbps is not None:
            limits.append(getattr(self.typical_ratio, bound) * self.nominal_gbps / 8)
        if self.ring_gbyte_per_s is not None:
            limits.append(getattr(self.ring_gbyte_per_s, bound) * communicators)
        return float(min(limits)) * nics

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        has_ratio = self.typical_ratio is not None and self.nominal_gbps is not None
        if not has_ratio and self.typical_gbyte_per_s is None and self.ring_gbyte_per_s is None:
            raise ValueError(
                f"network `{self.name}` says neither `nominal_gbps` nor `typical_gbyte_per_s`"
            )
        return self


def with_prior(data: Mapping[str, Any], priors: Sequence[TransportPrior]) -> dict[str, Any]:
    """The data of a network, filled from its transport's prior where it is silent."""
    filled = dict(data)
    prior = next((each for each in priors if each.name == data.get("transport")), None)
    if prior is None:
        return filled  # the transport is unknown, which the model says
    known = prior.model_dump()
    sources = dict(filled.get("sources", {}))
    says_how_much = "typical_ratio" in filled or "typical_gbyte_per_s" in filled
    for key in _OF_PRIOR:
        is_rate = key.startswith("typical")
        if key not in filled and known[key] and not (is_rate and says_how_much):
            filled[key] = known[key]
            if key not in ("needs", "fitted_on") and prior.source is not None:
                sources[key] = prior.sources.get(key, prior.source)
    nominal = filled.get("nominal_gbps")
    ring = prior.ring(nominal if isinstance(nominal, (int, float)) else None)
    if ring is not None and not says_how_much and "ring_gbyte_per_s" not in filled:
        filled["ring_gbyte_per_s"] = {"value": ring.value, "low": ring.low, "high": ring.high}
        sources["ring_gbyte_per_s"] = prior.source or ""
    return filled | {"sources": sources}


@functools.cache
def known_transports() -> tuple[TransportPrior, ...]:
    """Every prior that is shipped."""
    return shipped_entries("transports", TransportPrior)


@functools.cache
def known_networks() -> tuple[NetworkClass, ...]:
    """Every network that is shipped."""
    priors = known_transports()
    filled = (with_prior(entry, priors) for entry in shipped_data("networks"))
    return tuple(NetworkClass.model_validate(entry) for entry in filled)


def find_network(
    name: str,
    networks: Sequence[NetworkClass] | None = None,
    transports: Sequence[TransportPrior] | None = None,
) -> NetworkClass:
    """The network of a name or alias, or one that `parse_network` can read.

    Raises InputError with what was meant.
    """
    networks = known_networks() if networks is None else networks
    wanted = plain(name)
    if any(wanted in map(plain, entry.names()) for entry in networks):
        return find_entry(name, networks, "network")
    parsed = parse_network(name, networks, transports)
    if parsed is not None:
        return parsed
    turned = _TURNED.fullmatch(wanted)
    if turned is not None:
        hint = f"did you mean `{turned['name']}*{turned['nics']}`?"
        raise InputError(f"the catalog has no network `{name}`", hint=hint)
    known = [plain(each) for entry in networks for each in entry.names()]
    hint = did_you_mean(wanted, known) or "write it as transport-rate*NICs: `roce-400g*8`"
    raise InputError(f"the catalog has no network `{name}`", hint=hint)


def parse_network(
    text: str,
    networks: Sequence[NetworkClass] | None = None,
    transports: Sequence[TransportPrior] | None = None,
) -> NetworkClass | None:
    """`roce-400g`, `tcp-25g`, `ib-ndr*8`, `efa-3.2t`: transport, rate of a NIC, NICs of a node.

    None where it is not of that form. Raises InputError for a form that can't be: zero bandwidth.
    """
    networks = known_networks() if networks is None else networks
    transports = known_transports() if transports is None else transports
    name = plain(text)
    times = _TIMES.fullmatch(name)
    base, nics = (times["name"], int(times["nics"])) if times else (name, 1)
    if nics < 1:
        raise InputError(f"network `{text}`: a node has at least one NIC")
    known = next((each for each in networks if base in map(plain, each.names())), None)
    if known is not None and times is not None:
        return known.model_copy(update={"name": f"{known.name}*{nics}", "nics": nics * known.nics})
    match = _WRITTEN.fullmatch(base)
    prior = None if match is None else _transport(match["transport"], transports)
    if match is None or prior is None:
        return None
    nominal = float(match["rate"]) * (1000 if match["unit"] == "t" else 1)
    if nominal <= 0:
        raise InputError(f"network `{text}`: zero bandwidth", hint="for example `roce-400g`")
    if nominal > MOST_NOMINAL_GBPS:
        raise InputError(
            f"network `{text}`: a NIC of {nominal:,.0f} Gbit/s", hint="for example `roce-400g`"
        )
    data = {
        "name": f"{prior.name}-{nominal:g}g",
        "transport": prior.name,
        "nominal_gbps": nominal,
        "nics": nics,
        "source": prior.source,
        "date": prior.date,
    }
    return NetworkClass.model_validate(with_prior(data, transports))


def _transport(word: str, transports: Sequence[TransportPrior]) -> TransportPrior | None:
    names = get_args(Transport)
    return next((each for each in transports if word in each.names() and each.name in names), None)
