"""What does a known payload take on a link, whatever the machine does meanwhile?

At least its own segments, each with its headers; at most 5 % more, as where TCP fills some not
quite, and what was sent again. Both ends count that, the receiver never before the sender.
"""

from typing import Any

from broadgauge.agent.emulated.shaping import burst_bytes

ETHERNET_BYTES = 14
TCP_HEADER_BYTES = 52
"""IPv4 without options, TCP with its time stamps."""
OTHER_BYTES = 10_000
"""The handshake, the end, who has which address."""


def payload_on_the_wire(payload_bytes: int, mtu: int, overlay_bytes: int = 0) -> int:
    """Bytes of a stream of full segments, Ethernet headers included."""
    num_segments = -(-payload_bytes // (mtu - overlay_bytes - TCP_HEADER_BYTES))
    return payload_bytes + num_segments * (ETHERNET_BYTES + overlay_bytes + TCP_HEADER_BYTES)


def least_seconds(wire_bytes: int, rate_gbps: float) -> float:
    """How long do these take at this line rate, if the bucket was full and a packet under way?"""
    ahead_bytes = burst_bytes(rate_gbps) + 65_536
    return 0.99 * (wire_bytes - ahead_bytes) / (rate_gbps * 1.25e8)


def assert_counted(answer: dict[str, Any], least_bytes: int, mtu: int) -> None:
    """Of the case `counters`: in order, the receiver's reading, the sender's, the receiver's."""
    before, sender, after = answer["receiver_before"], answer["sender"], answer["receiver"]
    most = 1.05 * least_bytes + sender["tcp_retransmits"] * (mtu + ETHERNET_BYTES) + OTHER_BYTES
    assert least_bytes <= before["rx_bytes"] <= sender["tx_bytes"] <= most
    assert 0 < sender["rx_bytes"] <= after["tx_bytes"]
    assert sender["tx_packets"] >= least_bytes // (mtu + ETHERNET_BYTES)
    assert before["rx_packets"] <= sender["tx_packets"]
