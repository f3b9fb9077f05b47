"""What does the catalog say of a model, a network, a node? In the words of a `TrainingCase`."""

import math
from collections import Counter
from dataclasses import replace

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.models import ModelEntry
from broadgauge.catalog.networks import NetworkClass, TransportPrior, known_transports
from broadgauge.messages.vocabulary import Transport as CatalogTransport
from broadgauge.predict.case import Fabric, ModelShape, Transport
from broadgauge.specs.errors import InputError
from broadgauge.specs.units import parse_rate_gbps

MANY = 1_000_000
"""Communicators of a node that no limit of one of them holds back."""
MOST_RATIO = 1.05
"""Of nominal, that a measured rate may be: it is a mistake of units or direction above."""


def shape_of(entry: ModelEntry) -> ModelShape:
    """The shape of a known model.

    Latent attention's wide heads come from narrow projections, so its matrices are nearer those of
    heads that share `hidden` than those of heads of their own width.
    """
    return ModelShape(
        name=entry.name,
        architecture=entry.architecture,
        layers=entry.layers,
        hidden=entry.hidden,
        heads=entry.heads,
        kv_heads=entry.kv_heads,
        head_dim=entry.head_dim if entry.latent_attention is None else None,
        ffn_hidden=entry.ffn_hidden if entry.experts == 1 else entry.expert_ffn_hidden,
        gated_mlp=entry.gated_mlp,
        vocabulary=entry.vocabulary,
        tied_embeddings=entry.tied_embeddings,
        params=float(entry.params),
        active_params=float(entry.active_params),
        num_experts=entry.experts,
    )


def priced_as(transport: CatalogTransport) -> Transport:
    """A known transport as predictions price it: RDMA of another kind as the nearest one, with a
    small message's latency of its own, which the fabric carries."""
    match transport:
        case "slingshot" | "tcpx":
            return "efa"
        case "omnipath":
            return "infiniband"
        case _:
            return transport


def fabric_of_class(network: NetworkClass) -> Fabric:
    """The fabric of a known network: nominal, nothing measured.

    What its entry says beyond its transport's prior goes with it.
    """
    is_other = priced_as(network.transport) != network.transport
    prior = next(each for each in known_transports() if each.name == network.transport)
    fabric = Fabric(
        name=network.name,
        transport=priced_as(network.transport),
        node_gbps=network.node_nominal_gbps,
        latency_s=(
            network.latency_s.value if is_other or network.latency_s != prior.latency_s else None
        ),
    )
    if not _says_how_much(network, prior):
        return fabric
    ring, one = network.ring_gbyte_per_s, network.carried()
    return replace(
        fabric,
        stated_node_gbyte_per_s=network.carried(communicators=MANY).gbyte_per_s,
        stated_ring_gbyte_per_s=None if ring is None else ring.value * network.nics,
        stated_spread_ratio=math.sqrt(one.high_gbyte_per_s / one.low_gbyte_per_s),
    )


def _says_how_much(network: NetworkClass, prior: TransportPrior) -> bool:
    """Does the entry itself, and not only its transport's prior?"""
    rates = (network.typical_ratio, network.typical_gbyte_per_s)
    if network.nics > 1 and network.typical_gbyte_per_s is not None:
        return True  # the prior is of one NIC
    if rates != (prior.typical_ratio, prior.typical_gbyte_per_s):
        return True
    ring, usual = network.ring_gbyte_per_s, prior.ring(network.nominal_gbps)
    if ring is None or usual is None:
        return ring is not usual
    return (ring.value, ring.low, ring.high) != (usual.value, usual.low, usual.high)


def fabric_named(text: str, catalog: Catalog) -> Fabric:
    """`roce-400g`, or with what it was measured to carry per node: `pod=0.48GB/s`.

    Raises InputError.
    """
    name, has_rate, rate = text.partition("=")
    fabric = fabric_of_class(catalog.network(name))
    if not has_rate:
        return fabric
    hint = f"{name}=0.48GB/s"
    try:
        carried_gbps = parse_rate_gbps(rate)
    except ValueError as error:
        raise InputError(f"network `{text}`: {error}", hint=hint) from None
    if not isinstance(carried_gbps, float) or not carried_gbps > 0:
        raise InputError(f"network `{text}`: zero bandwidth", hint=hint)
    if fabric.node_gbps is not None and carried_gbps > MOST_RATIO * fabric.node_gbps:
        raise InputError(
            f"network `{text}`: its NICs are of {fabric.node_gbps:g} Gbit/s a node, "
            f"{fabric.node_gbps / 8:g} GB/s, and carry no more",
            hint="a bit is written `Gbit/s`, a byte `GB/s`",
        )
    measured = carried_gbps / 8
    return replace(fabric, name=f"{name} at {rate}", measured_node_gbyte_per_s=measured)


def usual_gpus_per_node(gpu: Gpu, catalog: Catalog) -> tuple[int, str]:
    """So many, and why: what most known nodes of this GPU have, or of the one that it is like, else
    its largest board up to 8."""
    for name in filter(None, (gpu.name, gpu.like)):
        sizes = Counter(node.gpus_per_node for node in catalog.nodes if node.gpu == name)
        if sizes:
            number = max(sizes, key=lambda size: (sizes[size], size))
            which = "this GPU" if name == gpu.name else f"{name}, which it is like"
            return number, f"as most known nodes of {which}"
    if gpu.nvlink is not None:
        boards = [board.gpus for board in gpu.nvlink.boards if board.topology != "bridge"]
        largest = max((size for size in boards if size <= 8), default=None)
        if largest is not None:
            return largest, "its usual board"
    return 8, "servers have up to 8 slots"
