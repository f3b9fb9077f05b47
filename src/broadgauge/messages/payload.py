"""How much of a line rate is left for what a TCP stream carries?"""

ETHERNET_HEADER_BYTES = 14
TCP_IP_HEADER_BYTES = 52
"""IPv4 20 + TCP 20 + timestamps option 12 (RFC 791, RFC 9293, RFC 7323)."""
VXLAN_HEADER_BYTES = 50
"""Outer Ethernet 14 + IPv4 20 + UDP 8 + VXLAN 8 (RFC 7348, section 5). The tunnel's MTU is that
much smaller than the link's, as an overlay's is."""


def payload_rate_gbps(rate_gbps: float, mtu_bytes: int, overlay_bytes: int = 0) -> float:
    """How much TCP payload fits a link of this rate? 95.7 % at MTU 1500, 99.3 % at 9000.

    The shaper counts the Ethernet header and no preamble, so of each frame of MTU + 14 bytes
    MTU − 52 are payload, less an overlay's headers: 92.3 % in VXLAN at MTU 1500. Source:
    docs/architecture.md, "Shaping"; headers as named above.
    """
    payload_bytes = mtu_bytes - overlay_bytes - TCP_IP_HEADER_BYTES
    return rate_gbps * payload_bytes / (mtu_bytes + ETHERNET_HEADER_BYTES)
