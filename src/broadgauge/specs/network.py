"""What is a network, as far as an experiment can set it?"""

from typing import ClassVar, Literal

from pydantic import Field

from broadgauge.specs.base import EnvironmentVariables, Name, Spec
from broadgauge.specs.units import RateGbps, show_rate

ETHERNET_HEADER_BYTES = 14
TCP_IP_HEADER_BYTES = 52
"""IPv4 20 + TCP 20 + timestamps option 12 (RFC 791, RFC 9293, RFC 7323)."""


class Network(Spec):
    """One network of an emulated cluster: what each node's NIC is given.

    It emulates a TCP line rate: not RDMA, latency, loss, offloads or a NIC's CPU cost. Labels in
    reports say so (`pod-like, 200 Mbit/s, TCP, no added delay`).
    """

    name: Name
    rate_gbps: RateGbps | None = None
    """Line rate of each NIC and direction, 10^9 bit/s with Ethernet headers; null: unshaped."""
    mtu_bytes: int = Field(default=1500, ge=576, le=65_000)
    nccl_seen_gbps: RateGbps | Literal["default"] | None = None
    """The NIC speed NCCL is told by its topology file. null: the line rate (or, unshaped,
    100 Gbit/s). `default`: what NCCL reads from the device, 10 Gbit/s for a veth. Source:
    NCCL src/graph/topo.cc keeps a `speed` given in the XML."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for the ranks on this network, such as NCCL_SOCKET_NTHREADS."""
    description: str = ""

    planned: ClassVar[dict[str, str]] = {
        "delay_s": "added delay, where the kernel has netem",
        "jitter_s": "variation of the delay, where the kernel has netem",
        "loss_ratio": "lost packets, where the kernel has netem",
        "overlay": "a VXLAN device",
        "nics_per_node": "several NICs a node",
        "best_effort": "leave out what the kernel can't emulate",
    }

    @property
    def payload_rate_gbps(self) -> float | None:
        """How much payload a plain TCP stream can carry; None where the link is unshaped."""
        if self.rate_gbps is None:
            return None
        return payload_rate_gbps(self.rate_gbps, self.mtu_bytes)

    @property
    def label(self) -> str:
        """What was emulated, in words that claim no more than that."""
        rate = "unshaped" if self.rate_gbps is None else show_rate(self.rate_gbps)
        mtu = "" if self.mtu_bytes == 1500 else f", MTU {self.mtu_bytes}"
        return f"{self.name}, {rate}, TCP{mtu}, no added delay"


def payload_rate_gbps(rate_gbps: float, mtu_bytes: int) -> float:
    """How much TCP payload fits a link of this rate? 95.7 % at MTU 1500, 99.3 % at 9000.

    The shaper counts the Ethernet header and no preamble, so of each frame of MTU + 14 bytes
    MTU − 52 are payload. Source: docs/architecture.md, "Shaping"; headers as named above.
    """
    payload_bytes = mtu_bytes - TCP_IP_HEADER_BYTES
    return rate_gbps * payload_bytes / (mtu_bytes + ETHERNET_HEADER_BYTES)
