"""What are nodes' NICs called, and which addresses have they? A NIC's number is a subnet, /16."""

PREFIX_LENGTH = 16
"""Room for 65,534 nodes; how many there may be stands in messages/limits.py."""
_FIRST_SUBNET = 80
_FIRST_OVERLAY_SUBNET = 144
"""64 further: as many NICs would fit between."""
_STORAGE_SUBNET = 208
_FIRST_STORE = 255 * 250
"""Stores come behind all nodes in their subnet."""
STORAGE_DEVICE = "storage0"
"""A node's NIC to the stores, and a store's own."""


def device_name(nic_number: int) -> str:
    """A node's end of a veth pair."""
    return f"eth{nic_number}"


def interface_name(nic_number: int, *, has_overlay: bool) -> str:
    """What the ranks use: the tunnel over the device, where there is one."""
    return f"vxlan{nic_number}" if has_overlay else device_name(nic_number)


def nic_address(node_number: int, nic_number: int) -> str:
    """Which IPv4 address has this NIC? 10.80.0.1 is node 0's first, 10.81.0.1 its second."""
    return _address(_FIRST_SUBNET, node_number, nic_number)


def overlay_address(node_number: int, nic_number: int) -> str:
    """And the tunnel over it? 10.144.0.1, 10.145.0.1."""
    return _address(_FIRST_OVERLAY_SUBNET, node_number, nic_number)


def rank_address(node_number: int, nic_number: int, *, has_overlay: bool) -> str:
    """Which of the two do the ranks use?"""
    address = overlay_address if has_overlay else nic_address
    return address(node_number, nic_number)


def overlay_hardware_address(node_number: int, nic_number: int) -> str:
    """Of a tunnel: locally administered (IEEE 802, second bit of the first byte), its own."""
    high, low = divmod(node_number, 256)
    return f"02:bd:00:{nic_number:02x}:{high:02x}:{low:02x}"


def storage_address(node_number: int) -> str:
    """Of a node's NIC to the stores: 10.208.0.1 is node 0's."""
    return _address(_STORAGE_SUBNET, node_number, 0)


def store_address(store_number: int) -> str:
    """Of a store: 10.208.255.1 is the first."""
    return _address(_STORAGE_SUBNET, _FIRST_STORE + store_number, 0)


def _address(first_subnet: int, node_number: int, nic_number: int) -> str:
    high, low = divmod(node_number, 250)
    return f"10.{first_subnet + nic_number}.{high}.{low + 1}"
