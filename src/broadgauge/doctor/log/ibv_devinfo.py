"""Which ports did `ibv_devinfo` list in this log, in which state and with packets of which size?

Source of its form: linux-rdma/rdma-core libibverbs/examples/devinfo.c: the adapter's name, then of
each port one line a fact; the physical state only with -v.
"""

import re
from dataclasses import dataclass, field

from broadgauge.doctor.log.facts import ListedPort, Place
from broadgauge.doctor.log.ibstat import MOST_PORTS

FIRST = b"hca_id:\t"
"""The first line of each adapter, which no other program prints."""
TRIGGERS = (FIRST, b"\tport:\t", b"state:\t", b"_mtu:\t", b"link_layer:\t")
"""Looked for from the first list on."""
_ADAPTER = re.compile(r"\bhca_id:\s+(?P<name>[\w.-]{1,64})")
_PORT = re.compile(r"\bport:\s+(?P<port>\d{1,3})\s*$")
_FIELD = re.compile(
    r"(?<!\w)(?P<name>state|phys_state|active_mtu|max_mtu|link_layer):\s+(?P<value>\w{1,32})"
)
_STATES = {
    "PORT_DOWN": "Down",
    "PORT_INIT": "Initializing",
    "PORT_ARMED": "Armed",
    "PORT_ACTIVE": "Active",
    "SLEEP": "Sleep",
    "POLLING": "Polling",
    "DISABLED": "Disabled",
    "PORT_CONFIGURATION_TRAINNING": "PortConfigurationTraining",
    "LINK_UP": "LinkUp",
    "LINK_ERROR_RECOVERY": "LinkErrorRecovery",
}
"""As `ibstat` writes them. Source: devinfo.c, port_state_str and port_phy_state_str."""


@dataclass(slots=True)
class IbvDevinfo:
    """Takes in its lines, in their order."""

    ports: list[ListedPort]
    adapter: str | None = field(default=None)
    """Whose list is being read."""
    _own: ListedPort | None = field(default=None)
    """The port whose lines are being read, the last of `ports`."""

    def take(self, text: str, place: Place) -> bool:
        """Is it a line of such a list?"""
        adapter = _ADAPTER.search(text)
        if adapter is not None:
            self.adapter, self._own = adapter["name"], None
            return True
        if self.adapter is None:
            return False
        port = _PORT.search(text)
        if port is not None:
            self._begin(ListedPort(place, f"{self.adapter}:{port['port']}", "unknown", "unknown"))
            return True
        told = _FIELD.search(text)
        if told is None or self._own is None:
            return False
        self._put(told["name"], told["value"])
        return True

    def _begin(self, port: ListedPort) -> None:
        self._own = port if len(self.ports) < MOST_PORTS else None
        if self._own is not None:
            self.ports.append(port)

    def _put(self, name: str, value: str) -> None:
        assert self._own is not None
        own = self._own
        if name == "state":
            own = own._replace(state=_STATES.get(value, value))
        elif name == "phys_state":
            own = own._replace(physical_state=_STATES.get(value, value))
        elif name == "link_layer":
            own = own._replace(link=value)
        elif value.isdecimal() and name == "active_mtu":
            own = own._replace(mtu_bytes=int(value))
        elif value.isdecimal():
            own = own._replace(most_mtu_bytes=int(value))
        self._own = self.ports[-1] = own
