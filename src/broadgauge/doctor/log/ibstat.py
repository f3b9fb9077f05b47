"""Which ports did `ibstat` list in this log, and in which state?

Source of its form: linux-rdma/rdma-core infiniband-diags/ibstat.c: the adapter's name in one line,
then each port with its states and its link layer.
"""

import re
from dataclasses import dataclass, field

from broadgauge.doctor.log.facts import ListedPort, Place

SECOND = b"CA type: "
"""The second line of each adapter, which no other program prints."""
TRIGGERS = (b"CA '", b"Physical state: ", b"State: ", b"Port 1:", b"Port 2:", b"Link layer: ")
"""Looked for from the first list on."""
MOST_PORTS = 512
_ADAPTER = re.compile(r"\bCA '(?P<name>[\w.-]{1,64})'")
_PORT = re.compile(r"\bPort (?P<port>\d{1,3}):\s*$")
_FIELD = re.compile(r"\b(?P<name>State|Physical state|Link layer): (?P<value>\w{1,32})\s*$")


@dataclass(slots=True)
class Ibstat:
    """Takes in its lines, in their order."""

    ports: list[ListedPort] = field(default_factory=list)
    _adapter: str | None = None
    _port: str = "1"
    _state: str | None = None

    def take(self, text: str, place: Place) -> bool:
        """Is it a line of such a list?"""
        adapter = _ADAPTER.search(text)
        if adapter is not None:
            self._adapter, self._port, self._state = adapter["name"], "1", None
            return True
        if self._adapter is None:
            return False
        port = _PORT.search(text)
        if port is not None:
            self._port, self._state = port["port"], None
            return True
        told = _FIELD.search(text)
        if told is None:
            return False
        if told["name"] == "State":
            self._state = told["value"]
        elif told["name"] == "Physical state":
            self._add(told["value"], place)
        elif self.ports:
            self.ports[-1] = self.ports[-1]._replace(link=told["value"])
        return True

    def _add(self, physical_state: str, place: Place) -> None:
        if len(self.ports) < MOST_PORTS:
            name = f"{self._adapter}:{self._port}"
            self.ports.append(ListedPort(place, name, self._state or "unknown", physical_state))
