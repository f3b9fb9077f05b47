"""Which host channel adapters are here, how are their ports, and may this process use them?

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband; the `hw_counters` are described in
NVIDIA's "Understanding mlx5 ethtool Counters" and "InfiniBand Port Counters".
"""

import errno
import ipaddress
import os
import re

from broadgauge.agent.hardware.pci import read_device
from broadgauge.agent.hardware.tree import Tree, to_number
from broadgauge.messages.hardware import GidFacts, HcaFacts, HcaPort, RdmaFacts

_HCAS = "/sys/class/infiniband"
_FILES = "/dev/infiniband"
COUNTERS = (
    *("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors"),
    *("port_xmit_discards", "local_link_integrity_errors", "excessive_buffer_overrun_errors"),
    *("port_xmit_constraint_errors", "port_rcv_constraint_errors", "VL15_dropped"),
    *("port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors"),
)
HARDWARE_COUNTERS = (
    *("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "duplicate_request"),
    *("rnr_nak_retry_err", "out_of_buffer", "implied_nak_seq_err", "roce_adp_retrans"),
    *("roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "np_cnp_sent"),
    *("rp_cnp_handled", "rp_cnp_ignored", "np_ecn_marked_roce_packets", "rx_icrc_encapsulated"),
    *("req_cqe_error", "resp_cqe_error", "req_remote_access_errors", "resp_local_length_error"),
)
MOST_GIDS = 512
_RATE = re.compile(r"(\d{1,6}(?:\.\d+)?) Gb/sec")
_MAPPED = re.compile(r"0000:0000:0000:0000:0000:ffff:([0-9a-f]{4}):([0-9a-f]{4})")
_EMPTY = ("0000:0000:0000:0000:0000:0000:0000:0000", "fe80:0000:0000:0000:0000:0000:0000:0000")
_MODES = {"Y": "shared", "1": "shared", "N": "exclusive", "0": "exclusive"}


def read_hcas(tree: Tree) -> tuple[HcaFacts, ...]:
    """Every adapter that this process can see, used or not."""
    names = [name for name in tree.names(_HCAS) if tree.exists(_HCAS, name, "ports")]
    return tuple(_read_hca(tree, name) for name in names)


def read_rdma(tree: Tree) -> RdmaFacts:
    """The files that libibverbs opens: is each there, and does it open?"""
    names = [name for name in tree.names(_FILES) if name.startswith("uverbs")]
    tried = {f"{_FILES}/{name}": _refusal(tree, name) for name in names}
    mode = tree.text("/sys/module/ib_core/parameters/netns_mode")
    return RdmaFacts(
        device_files=tuple(tried),
        refused_files={path: why for path, why in tried.items() if why is not None},
        namespace_mode=_MODES.get(mode or ""),
    )


def _refusal(tree: Tree, name: str) -> str | None:
    """Why it does not open: rights, or the container's list of devices; None: it does."""
    try:
        os.close(os.open(tree.path(_FILES, name), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return os.strerror(error.errno or errno.EIO)
    return None


def _read_hca(tree: Tree, name: str) -> HcaFacts:
    pci = read_device(tree, tree.real(_HCAS, name, "device"))
    numbers = [name for name in tree.names(_HCAS, name, "ports") if to_number(name) is not None]
    ports = (_read_port(tree, name, int(number)) for number in sorted(numbers, key=int))
    return HcaFacts(
        name=name,
        ports=tuple(ports),
        firmware=tree.text(_HCAS, name, "fw_ver") or None,
        board=tree.text(_HCAS, name, "board_id") or None,
        is_virtual_function=(None if pci is None else tree.exists(_HCAS, name, "device", "physfn")),
        driver=tree.link_name(_HCAS, name, "device", "driver"),
        pci=pci,
        interfaces=tuple(tree.names(_HCAS, name, "device", "net")),
    )


def _read_port(tree: Tree, hca: str, number: int) -> HcaPort:
    port = (_HCAS, hca, "ports", str(number))
    rate = _RATE.match(tree.text(*port, "rate") or "")
    counters = {
        name: count
        for folder, names in (("counters", COUNTERS), ("hw_counters", HARDWARE_COUNTERS))
        for name in names
        if (count := tree.number(*port, folder, name)) is not None
    }
    return HcaPort(
        number=number,
        state=_word(tree.text(*port, "state")),
        physical_state=_word(tree.text(*port, "phys_state")),
        rate_gbps=None if rate is None else float(rate[1]),
        link_layer=tree.text(*port, "link_layer") or None,
        gids=_read_gids(tree, port),
        counters=counters,
    )


def _word(text: str | None) -> str | None:
    """`4: ACTIVE` → `ACTIVE`."""
    return None if text is None else text.partition(":")[2].strip() or text or None


def _read_gids(tree: Tree, port: tuple[str, ...]) -> tuple[GidFacts, ...] | None:
    names = [name for name in tree.names(*port, "gids") if to_number(name) is not None]
    if not names:
        return None
    found: list[GidFacts] = []
    for name in sorted(names, key=int)[:MOST_GIDS]:
        gid = (tree.text(*port, "gids", name) or "").lower()
        if not gid or gid in _EMPTY:
            continue
        found.append(
            GidFacts(
                index=int(name),
                gid=gid,
                kind=tree.text(*port, "gid_attrs", "types", name) or None,
                interface=tree.text(*port, "gid_attrs", "ndevs", name) or None,
                ipv4=_mapped(gid),
            )
        )
    return tuple(found)


def _mapped(gid: str) -> str | None:
    """Source: RFC 4291, 2.5.5.2, IPv4-mapped IPv6 address."""
    match = _MAPPED.fullmatch(gid)
    return None if match is None else str(ipaddress.IPv4Address(int(match[1] + match[2], 16)))
