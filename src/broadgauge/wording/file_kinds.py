"""What is at a path that is no file and no folder? Opened, it may hold a reader for ever."""

import stat

_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def special_kind(mode: int) -> str | None:
    """`a FIFO`, by the `st_mode` of a stat that follows links; None for files and folders."""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), None)
