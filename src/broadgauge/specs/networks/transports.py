"""In which ways do bytes go from node to node? The words of catalog and experiments alike."""

from broadgauge.messages.vocabulary import Transport

RDMA: tuple[Transport, ...] = ("roce", "infiniband", "efa", "slingshot", "omnipath", "tcpx")
"""GPUs' memory is read and written by the NIC: no copy by the host's processors."""
BY_VERBS: tuple[Transport, ...] = ("roce", "infiniband")
"""NCCL has these itself, as its network `IB`; others need a plugin."""
NAMES: dict[Transport, str] = {
    "tcp": "TCP",
    "overlay": "TCP in an overlay",
    "virtio": "TCP over virtio",
    "sriov-tcp": "TCP over SR-IOV",
    "roce": "RoCE",
    "infiniband": "InfiniBand",
    "efa": "EFA",
    "slingshot": "Slingshot",
    "omnipath": "Omni-Path",
    "tcpx": "GPUDirect-TCPX",
}
"""For people."""
