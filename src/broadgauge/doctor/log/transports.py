"""Over what does a network of NCCL's, named by itself or by a plugin, send?"""

from broadgauge.doctor.log.job import OWN_RDMA, SOCKET
from broadgauge.messages.vocabulary import Transport

_OF_PLUGINS: tuple[tuple[str, Transport], ...] = (
    ("libfabric", "efa"),
    ("efa", "efa"),
    ("ofi", "efa"),
    ("tcpx", "tcpx"),
    ("fastrak", "tcpx"),
    ("gib", "roce"),
    ("psm2", "omnipath"),
    ("cxi", "slingshot"),
    ("ibext", "infiniband"),
    ("ib_plugin", "infiniband"),
    ("fastsocket", "tcp"),
    ("socket", "tcp"),
)
"""Part of what a plugin calls its network, in lower case → how it sends. gIB is Google's RoCE
(google/nccl-plugin-gib; A3 Ultra's documentation)."""
_OF_PROVIDERS: tuple[tuple[str, Transport], ...] = (
    ("efa", "efa"),
    ("cxi", "slingshot"),
    ("verbs", "infiniband"),
    ("psm", "omnipath"),
    ("tcp", "tcp"),
    ("sockets", "tcp"),
)
"""libfabric's providers, that aws-ofi-nccl names. Source: ofiwg/libfabric man/fabric.7.md."""


def of_network(name: str, provider: str | None = None) -> Transport | None:
    """`AWS Libfabric` → efa, or what the provider says; None: not known."""
    plain = name.casefold()
    if plain == SOCKET:
        return "tcp"
    if plain == OWN_RDMA:
        return "infiniband"
    found = next((way for word, way in _OF_PLUGINS if word in plain), None)
    if found == "efa" and provider is not None:
        return next((way for word, way in _OF_PROVIDERS if word in provider.casefold()), None)
    return found
