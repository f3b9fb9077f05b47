"""What does cluster DNS answer? A small server on the pod network, from Services and pods.

Sources: "Kubernetes DNS-Based Service Discovery" 1.1.0 (names of Services, headless ones and
pods' host names), RFC 1035 (messages).

Where it differs: a Service with a cluster address resolves to its pods, since nothing here
forwards; a name whose pods are starting is waited for a while instead of denied at once.
"""

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]
DOMAIN = "cluster.local"
_A, _ANY_TYPE, _IN = 1, 255, 1
_NAME_ERROR = 3
TTL_S = 5
_POLL_S = 0.02


def find(name: str, services: Iterable[Json], pods: Iterable[Json]) -> list[str] | None:
    """The addresses of a name; empty while its pods have none yet, None where it is no name."""
    labels = name.rstrip(".").lower().removesuffix(f".{DOMAIN}").split(".")
    if not name.rstrip(".").lower().endswith(f".{DOMAIN}") or len(labels) < 3:
        return None
    if labels[-1] == "pod" and len(labels) == 3:
        return [labels[0].replace("-", ".")]
    if labels[-1] != "svc" or len(labels) > 4:
        return None
    *front, namespace, _ = labels
    service = next((one for one in services if _is(one, namespace, front[-1])), None)
    if service is None:
        return None
    if outside := service["spec"].get("externalName"):
        return [socket.gethostbyname(outside)] if outside == "localhost" else None
    chosen = [pod for pod in pods if _is_behind(pod, service)]
    if len(front) == 2:
        chosen = [pod for pod in chosen if _host_name(pod) == (front[0], front[1])]
    return [pod["status"]["podIP"] for pod in chosen if _is_published(pod, service)]


def _is(service: Json, namespace: str, name: str) -> bool:
    metadata = service["metadata"]
    return metadata["namespace"] == namespace and metadata["name"] == name


def _is_behind(pod: Json, service: Json) -> bool:
    selector = service["spec"].get("selector") or {}
    labels = pod["metadata"].get("labels") or {}
    return (
        bool(selector)
        and pod["metadata"]["namespace"] == service["metadata"]["namespace"]
        and all(labels.get(key) == value for key, value in selector.items())
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )


def _host_name(pod: Json) -> tuple[str | None, str | None]:
    return pod["spec"].get("hostname"), pod["spec"].get("subdomain")


def _is_published(pod: Json, service: Json) -> bool:
    """Has it an address, and is it ready or its Service told to publish it sooner?"""
    status = pod.get("status") or {}
    if not status.get("podIP"):
        return False
    if service["spec"].get("publishNotReadyAddresses"):
        return True
    conditions = status.get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


Lookup = Callable[[str], list[str] | None]


class DnsServer:
    """Answers on a socket of the pod network. What must be waited for waits in one thread."""

    def __init__(self, receiving: socket.socket, lookup: Lookup, patience_s: float) -> None:
        self._socket, self._lookup, self._patience_s = receiving, lookup, patience_s
        self._later: queue.Queue[tuple[float, bytes, Any]] = queue.Queue()
        for work in (self._serve, self._serve_later):
            threading.Thread(target=work, name="dns", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                question, caller = self._socket.recvfrom(2048)
            except ConnectionError:
                continue  # a caller that is gone: ICMP's answer to an earlier reply
            if not self._answer(question, caller, is_last=self._patience_s <= 0):
                self._later.put((time.monotonic() + self._patience_s, question, caller))

    def _serve_later(self) -> None:
        while True:
            until, question, caller = self._later.get()
            is_last = time.monotonic() >= until
            if not self._answer(question, caller, is_last=is_last):
                self._later.put((until, question, caller))
                time.sleep(_POLL_S)

    def _answer(self, question: bytes, caller: Any, *, is_last: bool) -> bool:
        """Is it done with? Not while a name's pods have no address yet."""
        try:
            name, kind = read_question(question)
        except (IndexError, struct.error, UnicodeDecodeError):
            return True
        found = self._lookup(name)
        if found == [] and not is_last:
            return False
        try:
            self._socket.sendto(reply(question, found if kind in (_A, _ANY_TYPE) or not found
                                      else ["none"]), caller)  # fmt: skip
        except OSError:  # the caller's pod is gone
            return True
        return True


def read_question(message: bytes) -> tuple[str, int]:
    """Name and type of the first question."""
    labels, place = [], 12
    while length := message[place]:
        labels.append(message[place + 1 : place + 1 + length].decode("ascii"))
        place += length + 1
    (kind,) = struct.unpack_from("!H", message, place + 1)
    return ".".join(labels), kind


def reply(question: bytes, addresses: list[str] | None) -> bytes:
    """A record for each address; a name error for None or none; ["none"]: none of this type."""
    place = 12
    while question[place]:
        place += question[place] + 1
    asked = question[12 : place + 5]
    records = [one for one in addresses or () if one != "none"]
    code = 0 if addresses else _NAME_ERROR
    flags = 0x8400 | (struct.unpack_from("!H", question, 2)[0] & 0x0100) | 0x0080 | code
    head = question[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
    body = b"".join(
        struct.pack("!HHHIH4s", 0xC00C, _A, _IN, TTL_S, 4, socket.inet_aton(one)) for one in records
    )
    return head + asked + body


def resolv_conf(namespace: str, server: str, pod_spec: Json) -> str:
    """What /etc/resolv.conf of a pod says; every policy but None is the cluster's."""
    config = pod_spec.get("dnsConfig") or {}
    servers, searches, options = [], [], []
    if pod_spec.get("dnsPolicy") != "None":
        servers.append(server)
        searches += [f"{namespace}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN]
        options.append("ndots:5")
    servers += config.get("nameservers") or ()
    searches += config.get("searches") or ()
    for option in config.get("options") or ():
        options.append(":".join(filter(None, (option["name"], option.get("value")))))
    lines = [f"nameserver {one}" for one in servers]
    lines += [f"search {' '.join(searches)}"] * bool(searches)
    lines += [f"options {' '.join(options)}"] * bool(options)
    return "\n".join(lines) + "\n"


def hosts_file(pod: Json, ip: str) -> str:
    """What /etc/hosts of a pod says: itself, and its hostAliases."""
    spec, metadata = pod["spec"], pod["metadata"]
    names = [host_name(pod)]
    if subdomain := spec.get("subdomain"):
        names.insert(0, f"{names[0]}.{subdomain}.{metadata['namespace']}.svc.{DOMAIN}")
    lines = ["# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", f"{ip}\t{' '.join(names)}"]
    for alias in spec.get("hostAliases") or ():
        lines.append(f"{alias['ip']}\t{' '.join(alias['hostnames'])}")
    return "\n".join(lines) + "\n"


def host_name(pod: Json) -> str:
    """At most 63 bytes, as the kubelet cuts a long name."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")
