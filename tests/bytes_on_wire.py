"""Does a counter have the bytes that were sent, and no more than they explain?

What is sent is at least the payload with its headers. On top come acknowledgements, little words
beside the payload, and what was sent again: a busy machine adds to that, and it is counted.
"""

FRAME_BYTES = 1514
"""Of Ethernet at MTU 1500, full."""


def assert_explained(
    counted_bytes: float,
    sent_bytes: float,
    *,
    num_retransmits: float,
    segment_bytes: int = FRAME_BYTES,
    where: object = "",
) -> None:
    """At least what was sent, and at most 1.05 times that and all that was sent again."""
    assert counted_bytes >= sent_bytes, where
    assert counted_bytes <= 1.05 * sent_bytes + num_retransmits * segment_bytes, where
