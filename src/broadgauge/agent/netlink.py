"""How is the kernel asked and told about interfaces, by the standard library alone? Over netlink.

Source: rtnetlink(7), netlink(7); Linux, include/uapi/linux/{netlink,rtnetlink,if_addr}.h.
"""

import os
import socket
import struct
from collections.abc import Iterator

NLM_F_REPLACE, NLM_F_CREATE = 0x100, 0x400
_NLM_F_REQUEST, _NLM_F_ACK = 0x1, 0x4
_NLM_F_DUMP = 0x300
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port."""
_ATTRIBUTE = struct.Struct("=HH")
_KIND_MASK = 0x3FFF
"""Above it NLA_F_NESTED and NLA_F_NET_BYTEORDER."""
_LONGEST_BYTES = 1 << 16


def dump(kind: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each message of the kernel's answer. Raises OSError."""
    with _asking() as channel:
        channel.send(_message(kind, _NLM_F_REQUEST | _NLM_F_DUMP, body))
        while True:
            for answer, data in _messages(channel.recv(_LONGEST_BYTES)):
                if answer == _NLMSG_DONE:
                    return
                yield answer, data


def tell(kind: int, flags: int, body: bytes) -> None:
    """Change one thing. Raises OSError with the kernel's number."""
    with _asking() as channel:
        channel.send(_message(kind, _NLM_F_REQUEST | _NLM_F_ACK | flags, body))
        for _ in _messages(channel.recv(_LONGEST_BYTES)):
            return


def attribute(kind: int, value: bytes) -> bytes:
    """Padded to the next multiple of four bytes."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(_aligned(length) - length)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and value of each."""
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _KIND_MASK, data[_ATTRIBUTE.size : length]
        data = data[_aligned(length) :]


def _asking() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Raises OSError where the kernel answers with an error; one of number 0 is its "done"."""
    while len(data) >= _HEADER.size:
        length, kind, *_ = _HEADER.unpack_from(data)
        if length < _HEADER.size:
            return
        body, data = data[_HEADER.size : length], data[_aligned(length) :]
        if kind == _NLMSG_ERROR:
            number = -struct.unpack_from("=i", body)[0]
            if number:
                raise OSError(number, os.strerror(number))
        yield kind, body


def _aligned(length: int) -> int:
    """Netlink's parts begin at multiples of four bytes."""
    return (length + 3) & ~3
