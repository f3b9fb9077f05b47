"""What should the bandwidth be, and who says so? From the catalog.

Busbw is nccl-tests' (docs/glossary.md), of a large all-reduce. Over a flat ring each byte of it
crosses every NIC of a node once, so a node's busbw is the sum of its NICs'; algorithms that add up
inside the node first can be above that.
"""

from dataclasses import dataclass

from broadgauge.catalog.entries import Spread
from broadgauge.catalog.networks import TransportPrior, find_network, known_transports
from broadgauge.catalog.paths import Expectation, expect_path
from broadgauge.catalog.references import BusbwFigure, known_busbw
from broadgauge.doctor.log.gdr_state import GdrState
from broadgauge.doctor.situation import Situation
from broadgauge.specs.networks.transports import NAMES, RDMA
from broadgauge.specs.units import show_bandwidth, show_rate

RDMA_FROM_BYTES = 2**30
"""Four nodes of p6-b200 give 157 GB/s at 64 MiB, 362 at 1 GiB and 382 at 16 GiB. Source:
stas00/ml-engineering network/README.md."""
TCP_FROM_BYTES = 128 * 2**20
"""From here on two DGX-1 are on their plateau over sockets. Source: NVIDIA/deepops
docs/k8s-cluster/roce-perf-k8s.md."""
_RDMA_NIC_GBPS = 100
_MOST_PUBLISHED = 2
_NO_GDR = "NVIDIA/nccl issue 1537 reports 10 instead of 180 GB/s without GPUDirect RDMA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """Where a figure of the expectation is from."""

    words: str
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthExpectation:
    """What a healthy job of this kind reaches; a bound that is None is not known."""

    words: str
    """Setup and bounds: `400 Gbit/s RoCE with GPUDirect RDMA: 46 to 48 GB/s a NIC, 8 NICs: 364 to
    384 GB/s busbw`, or `unknown: …`."""
    setup: str = ""
    """What it holds for: `400 Gbit/s RoCE with GPUDirect RDMA, 8 NICs`."""
    why_unknown: str | None = None
    """Where no bound is known."""
    low_gbyte_per_s: float | None = None
    """Busbw of the whole."""
    high_gbyte_per_s: float | None = None
    nic_low_gbyte_per_s: float | None = None
    """Of one NIC; None: one node, or not known."""
    nic_high_gbyte_per_s: float | None = None
    from_bytes: int = RDMA_FROM_BYTES
    """Of messages at least as large."""
    sources: tuple[Sourced, ...] = ()
    missing: tuple[str, ...] = ()
    """What has to be known for bounds, or for narrower ones."""
    by_rdma: str | None = None
    """Of a job over TCP: what RDMA would carry over NICs of this rate."""
    why_less: str | None = None
    """What was found that keeps this job below it."""
    if_so: str | None = None
    """What is taken for granted and nothing proves: `NVLink joins these GPUs`."""

    @property
    def is_known(self) -> bool:
        return self.low_gbyte_per_s is not None

    @property
    def bounds(self) -> str:
        """`364 to 384 GB/s`."""
        assert self.low_gbyte_per_s is not None
        assert self.high_gbyte_per_s is not None
        return _range(self.low_gbyte_per_s, self.high_gbyte_per_s)


def expect(situation: Situation, told_by: str = "the log") -> BandwidthExpectation:
    """Of all that is known; what is missing is named, and that it is `told_by` this."""
    if situation.num_nodes is None:
        return _unknown(f"{told_by} does not say how many nodes there are", "the number of nodes")
    if situation.num_nodes == 1:
        return _on_one_node(situation, told_by)
    return _between_nodes(situation, told_by)


def _unknown(why: str, *missing: str) -> BandwidthExpectation:
    return BandwidthExpectation(words=f"unknown: {why}", why_unknown=why, missing=missing)


def _on_one_node(situation: Situation, told_by: str) -> BandwidthExpectation:
    path, gpu, ranks = situation.inside, situation.gpu, situation.num_ranks
    if gpu is None:
        return _unknown(f"{told_by} does not name the GPU", "the GPU's name")
    if path is None or ranks is None:
        return _unknown(
            f"{told_by} names no path between the GPUs", "NCCL_DEBUG_SUBSYS=INIT,P2P,SHM"
        )
    found = expect_path(path, gpu, ranks)
    if found is None:
        return _unknown(
            f"nobody has published busbw of {ranks} {gpu} over {path} that the catalog knows",
            "a figure of this GPU, number and path: see `broadgauge catalog list busbw`",
        )
    low, high = found.low_gbyte_per_s, found.high_gbyte_per_s
    setup = f"{ranks} {gpu} over {path}"
    return BandwidthExpectation(
        words=f"{setup}: {_range(low, high)} busbw",
        setup=setup,
        low_gbyte_per_s=low,
        high_gbyte_per_s=high,
        from_bytes=found.from_bytes,
        sources=_of_path(found),
        missing=("whether P2P is NVLink or PCIe here",) if situation.is_inside_guessed else (),
        if_so="NVLink joins these GPUs" if situation.is_inside_unseen else None,
    )


def _of_path(found: Expectation) -> tuple[Sourced, ...]:
    return tuple(
        Sourced(words=show_bandwidth(each.gbyte_per_s), source=each.source, date=each.date)
        for each in found.figures[:_MOST_PUBLISHED]
    )


def _between_nodes(situation: Situation, told_by: str) -> BandwidthExpectation:
    transport, nic_gbps = situation.transport, situation.nic_gbps
    prior = None if transport is None else _prior_of(transport)
    if transport is None or prior is None:
        return _unknown(
            f"{told_by} does not say over what the nodes talk", "NCCL_DEBUG_SUBSYS=INIT,NET"
        )
    of_nic = _of_one_nic(prior, nic_gbps)
    if of_nic is None:
        return _unknown(
            f"what a NIC carries over {NAMES[transport]} follows from its rate, which {told_by} "
            "does not tell",
            "the NIC's rate",
        )
    low, high = of_nic.low, of_nic.high
    nics = situation.num_nics or 1
    rate = "" if nic_gbps is None else f"{show_rate(nic_gbps)} "
    gdr = " with GPUDirect RDMA" if transport in RDMA else ""
    setup = f"{rate}{NAMES[transport]}{gdr}"
    words = f"{setup}: {_range(low, high)} a NIC"
    if nics > 1:
        words += f", {nics} NICs: {_range(low * nics, high * nics)} busbw"
    return BandwidthExpectation(
        words=words,
        setup=f"{setup}, {nics} NIC{'s' * (nics > 1)}",
        low_gbyte_per_s=low * nics,
        high_gbyte_per_s=high * nics,
        nic_low_gbyte_per_s=low,
        nic_high_gbyte_per_s=high,
        from_bytes=RDMA_FROM_BYTES if transport in RDMA else TCP_FROM_BYTES,
        sources=(_of_prior(prior, words=_range(low, high)), *_published(situation)),
        missing=() if situation.num_nics else ("how many NICs a node uses: one is assumed",),
        by_rdma=None if transport in RDMA else _by_rdma(situation),
        why_less=_why_less(situation),
    )


def _prior_of(transport: str) -> TransportPrior | None:
    return next((each for each in known_transports() if each.name == transport), None)


def _by_rdma(situation: Situation) -> str | None:
    """Nearly every NIC of 100 Gbit/s and more has RDMA; of slower ones nothing is said."""
    nic_gbps = situation.nic_gbps
    if nic_gbps is None or nic_gbps < _RDMA_NIC_GBPS:
        return None
    prior = _prior_of("roce")
    of_nic = None if prior is None else _of_one_nic(prior, nic_gbps)
    if of_nic is None:
        return None
    nics = situation.num_nics or 1
    whole = _range(of_nic.low * nics, of_nic.high * nics)
    return f"RDMA (RoCE with GPUDirect) over NICs of this rate carries {whole} busbw"


def _of_one_nic(prior: TransportPrior, nic_gbps: float | None) -> Spread | None:
    """What large messages of one communicator carry over it, 10^9 byte/s; None: needs the rate."""
    if prior.typical_gbyte_per_s is not None:
        return prior.typical_gbyte_per_s
    if nic_gbps is None:
        return None
    ratio = prior.healthy_ratio or prior.typical_ratio
    assert ratio is not None
    nominal = nic_gbps / 8
    ring = prior.ring(nic_gbps) or Spread(value=nominal, low=nominal, high=nominal)
    return Spread(
        value=min(ring.value, ratio.value * nominal),
        low=min(ring.low, ratio.low * nominal),
        high=min(ring.high, ratio.high * nominal),
    )


def _of_prior(prior: TransportPrior, words: str) -> Sourced:
    key = "healthy_ratio" if prior.healthy_ratio is not None else "typical_ratio"
    source = prior.sources.get(key, prior.source or "the catalog")
    return Sourced(words=f"{words} a NIC", source=source, date=prior.date or "unknown")


def _published(situation: Situation) -> tuple[Sourced, ...]:
    """Figures of others on the same transport and rate, of as many nodes or nearly."""
    nodes = situation.num_nodes or 2
    alike = [figure for figure in known_busbw() if _is_alike(figure, situation)]
    alike.sort(key=lambda figure: abs(figure.nodes - nodes))
    return tuple(
        Sourced(
            words=(
                f"{show_bandwidth(figure.busbw_gbyte_per_s)} busbw: {figure.nodes} x "
                f"{figure.gpus_per_node} {figure.gpu}, {figure.network}"
            ),
            source=figure.source or "the catalog",
            date=figure.date or "unknown",
        )
        for figure in alike[:_MOST_PUBLISHED]
    )


def _is_alike(figure: BusbwFigure, situation: Situation) -> bool:
    if figure.network is None or figure.op != "all_reduce" or figure.backend != "nccl":
        return False
    if figure.message_bytes is not None and figure.message_bytes < RDMA_FROM_BYTES:
        return False
    network = find_network(figure.network)
    is_same = network.transport == situation.transport
    return is_same and network.nominal_gbps == situation.nic_gbps


def _why_less(situation: Situation) -> str | None:
    if situation.transport in RDMA and situation.is_over_sockets:
        return "TCP sockets are used instead"
    if situation.transport in RDMA and situation.gdr is GdrState.OFF:
        return f"GPUDirect RDMA is off ({_NO_GDR})"
    return None


def _range(low: float, high: float) -> str:
    """`46 to 48 GB/s`."""
    first, last = (show_bandwidth(bound, 2 if bound < 100 else 3) for bound in (low, high))
    if first == last:
        return last
    if first.split()[1] == last.split()[1]:
        first = first.split()[0]
    return f"{first} to {last}"
