"""What did `nvidia-smi topo -m` print: how far are GPUs from each other and from the NICs?

Source of its form: nvidia-smi's own help (`nvidia-smi topo -h`) and the legend below its table: a
row a device, `NV18` for joined by 18 NVLinks, then PIX, PXB, PHB, NODE and SYS, the farthest last.
"""

import re
from dataclasses import dataclass, field

from broadgauge.doctor.log.facts import ListedDistances, Place

HEAD = b"CPU Affinity"
"""Stands in the line above the rows, whatever the driver's version."""
TRIGGERS = (HEAD, b"GPU0\t", b"\tNV", b"\tSYS", b"\tNODE", b"\tPHB", b"\tPIX", b"\tPXB", b"NIC")
"""Looked for from the first head on."""
_MOST_TABLES = 256
_COLUMN = re.compile(r"(?<!\S)(?:GPU\d{1,3}|NIC\d{1,3}|mlx\d_\w{1,16})(?!\S)")
_ROW = re.compile(r"(?:^|\s)(?P<gpu>GPU\d{1,3})\s+(?P<cells>\S.*)$")
_CELL = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS")
_NIC = re.compile(r"\b(?P<nic>NIC\d{1,3}): (?P<name>[\w.-]{1,64})\s*$")


@dataclass(slots=True)
class TopoMatrix:
    """Takes in its lines, in their order."""

    tables: list[ListedDistances]
    _columns: list[str] = field(default_factory=list)

    def take(self, text: str, place: Place) -> bool:
        """Is it a line of such a table?"""
        if "CPU Affinity" in text:
            self._columns = _COLUMN.findall(text)
            if self._columns and len(self.tables) < _MOST_TABLES:
                self.tables.append(ListedDistances(place, {}, {}))
            return bool(self._columns)
        if not self._columns:
            return False
        table = self.tables[-1]
        named = _NIC.search(text)
        if named is not None:
            table.nic_names[named["nic"]] = named["name"]
            return True
        row = _ROW.search(text)
        if row is None:
            return False
        cells = row["cells"].split()[: len(self._columns)]
        if len(cells) < len(self._columns) or not all(map(_CELL.fullmatch, cells)):
            return False
        for column, cell in zip(self._columns, cells, strict=True):
            if column != row["gpu"]:
                table.distances[row["gpu"], column] = cell
        return True
