"""Is a leader's stream let go once, whoever closes it again?"""

import os

from broadgauge.messages.frames import FrameReader
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink


def test_a_link_that_is_closed_twice_closes_nothing_of_others() -> None:
    """One that broke is closed to make another, and again when its leader turns out to be gone."""
    reading, told = os.pipe()
    heard, writing = os.pipe()
    link = LeaderLink(ByteStream(reading=reading, writing=writing), -1)
    link.close()
    another = os.pipe()  # whose ends get the stream's numbers
    others = os.dup2(another[0], reading), os.dup2(another[1], writing)
    link.close()
    os.write(others[1], b"whole")
    assert os.read(others[0], 5) == b"whole"
    (attach,) = FrameReader().feed(os.read(heard, 1 << 16))[0]
    assert attach.message["type"] == "attach"
    for fd in {told, heard, *another, *others}:
        os.close(fd)
