"""Which interfaces, which ports does a list of NCCL's name, as NCCL_SOCKET_IFNAME and NCCL_IB_HCA
have it?

Source: NVIDIA/nccl, src/misc/utils.cc (parseStringList, matchIf) and src/transport/net_ib.cc: `^`
before it names all others, `=` whole names; else names begin so. `mlx5_0:1` is a port.
"""


def is_named(value: str, name: str, port: int | None = None) -> bool:
    """Does this list name the interface, or the adapter's port?"""
    is_of_others = value.startswith("^")
    value = value.removeprefix("^")
    is_whole = value.startswith("=")
    entries = [each for each in value.removeprefix("=").split(",") if each]
    found = not entries or any(_is_it(each, name, port, is_whole=is_whole) for each in entries)
    return found is not is_of_others


def _is_it(entry: str, name: str, port: int | None, *, is_whole: bool) -> bool:
    own, _, number = entry.partition(":")
    if port is None:
        own, number = entry, ""  # an interface's name may have a colon
    if number.isdecimal() and int(number) != port:
        return False
    return name == own if is_whole else name.startswith(own)
