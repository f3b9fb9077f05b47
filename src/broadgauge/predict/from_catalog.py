"""What does the catalog say of a model or a network, in the words of a `TrainingCase`?"""

from broadgauge.catalog.models import ModelEntry
from broadgauge.catalog.networks import NetworkClass
from broadgauge.catalog.networks import Transport as CatalogTransport
from broadgauge.predict.case import Fabric, ModelShape, Transport

NEAREST: dict[CatalogTransport, Transport] = {
    "slingshot": "efa",
    "omnipath": "infiniband",
    "tcpx": "efa",
}
"""Transports that are priced as another one of their kind: RDMA with a small message's latency of
their own, which the fabric carries."""


def shape_of(entry: ModelEntry) -> ModelShape:
    """The shape of a known model."""
    return ModelShape(
        name=entry.name,
        architecture=entry.architecture,
        layers=entry.layers,
        hidden=entry.hidden,
        heads=entry.heads,
        kv_heads=entry.kv_heads,
        ffn_hidden=entry.ffn_hidden if entry.experts == 1 else entry.expert_ffn_hidden,
        gated_mlp=entry.gated_mlp,
        vocabulary=entry.vocabulary,
        params=float(entry.params),
        active_params=float(entry.active_params),
        num_experts=entry.experts,
    )


def fabric_of_class(network: NetworkClass) -> Fabric:
    """The fabric of a known network: nominal, nothing measured."""
    return Fabric(
        name=network.name,
        transport=NEAREST.get(network.transport) or _same(network.transport),
        node_gbps=network.node_nominal_gbps,
        latency_s=network.latency_s.value if network.transport in NEAREST else None,
    )


def _same(transport: CatalogTransport) -> Transport:
    assert transport not in NEAREST
    return transport  # type: ignore[return-value]
