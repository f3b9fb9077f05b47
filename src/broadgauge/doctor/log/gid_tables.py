"""Which addresses (GIDs) of adapters did `show_gids` or `ibv_devinfo -v` list in this log?

Source of their forms: Mellanox/mlnx-tools ofed_scripts/utils/show_gids, a table with a head;
linux-rdma/rdma-core libibverbs/examples/devinfo.c, print_all_port_gids, below each port.
"""

import ipaddress
import re
from dataclasses import dataclass

from broadgauge.doctor.log.facts import ListedGid, Place
from broadgauge.doctor.log.ibv_devinfo import IbvDevinfo

OF_DEVINFO = b"GID["
OF_TABLE = b"DEV\tPORT\tINDEX\tGID"
"""With its tabs: a table that was pasted with blanks is not read."""
TRIGGERS = (OF_DEVINFO, b":0000:0000:")
"""Looked for from the first list on: the rows of a table have no word of their own."""
MOST_GIDS = 512
_OF_DEVINFO = re.compile(
    r"\bGID\[\s*(?P<index>\d{1,3})\]:\s+(?P<gid>[0-9a-fA-F:.]{3,45})(?P<type>.*)"
)
_ROW = re.compile(
    r"(?P<device>[\w.-]{1,64})\s+(?P<port>\d{1,3})\s+(?P<index>\d{1,3})\s+"
    r"(?P<gid>(?:[0-9a-fA-F]{4}:){7}[0-9a-fA-F]{4})\s+(?P<rest>.*)"
)
_ROCE_V2 = re.compile(r"\bv2\b")


@dataclass(slots=True)
class GidTables:
    """Takes in their lines, whichever program printed them."""

    gids: list[ListedGid]
    devices: IbvDevinfo
    """Whose list `ibv_devinfo`'s rows are in: they do not name their adapter."""

    def take(self, text: str, place: Place) -> bool:
        """Is it a row of such a list?"""
        row = _OF_DEVINFO.search(text)
        if row is not None:
            return self._add(place, self.devices.adapter, row["index"], row["gid"], row["type"])
        row = _ROW.search(text)
        if row is None:
            return False
        return self._add(place, row["device"], row["index"], row["gid"], row["rest"])

    def _add(self, place: Place, device: str | None, index: str, gid: str, kind: str) -> bool:
        try:
            address = ipaddress.IPv6Address(gid)
        except ValueError:
            return False
        if len(self.gids) < MOST_GIDS:
            is_v2 = _ROCE_V2.search(kind) is not None
            self.gids.append(ListedGid(place, device, int(index), address, is_roce_v2=is_v2))
        return True
