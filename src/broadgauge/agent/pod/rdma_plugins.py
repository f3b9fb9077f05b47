"""RDMA that NCCL has by a plugin alone: what of it is surely missing in this pod, and by which name
is NCCL held to it, so that it does not take sockets without a word?

Source: aws/aws-ofi-nccl, src/nccl_ofi_interface_nvidia.cpp; NVIDIA/nccl, src/plugin/net.cc (of the
network that NCCL_NET names, whatever the case of its letters, no other is taken);
HewlettPackard/shs-libcxi (opens /dev/cxi0, …); cornelisnetworks/opa-psm2 (opens /dev/hfi1_0, …).
"""

from collections.abc import Iterator

from broadgauge.agent.pod.adapters import adapters_here
from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.nccl_variables import Reason
from broadgauge.agent.pod.rdma_ready import closed_file
from broadgauge.messages.asked_network import AskedNetwork

BY_PLUGIN = ("efa", "slingshot", "omnipath", "tcpx")
LIBFABRIC = "AWS Libfabric"
"""What aws-ofi-nccl calls its network: up to 1.11 always, later (`Libfabric`) where NCCL_NET says
so."""
_BY_LIBFABRIC = ("efa", "slingshot")
_DRIVERS = {"efa": "efa", "omnipath": "hfi1"}
"""Of RDMA adapters that the kernel knows as such. Slingshot's is none of these, and of TCPX nothing
is known to be missing."""
_NET, _PLUGIN = "NCCL_NET", "NCCL_NET_PLUGIN"
_OF_NCCL = ("ib", "socket")


def plugin_problems(network: AskedNetwork, facts: PodFacts) -> Iterator[str]:
    """What is surely missing."""
    asked, drivers = f"`{network.transport}` is asked for", _drivers(facts)
    driver = _DRIVERS.get(network.transport or "")
    if driver is not None and not {driver, None} & drivers:
        yield f"{asked}, and no adapter has the driver {driver}; {adapters_here(facts)}"
    if network.transport == "slingshot" and not _has_file("cxi", facts):
        yield (
            f"{asked}, and no file /dev/cxi* is in this container: ask for the device plugin's "
            "resource in the pod's limits"
        )
    adapters = [hca for hca in facts.hardware.hcas if hca.driver == "efa"]
    if network.transport == "efa" and adapters:
        closed = [closed_file(hca, facts) for hca in adapters]
        if None not in closed or not facts.opened_files:
            why = ", ".join(each for each in closed if each) or "no /dev/infiniband/uverbs* opens"
            yield (
                f"{asked}, and this container can open none of its adapters ({why}): ask for "
                "`vpc.amazonaws.com/efa` in the pod's limits"
            )


def plugin_reasons(network: AskedNetwork, facts: PodFacts) -> list[Reason]:
    """None where the plugin's name is not sure."""
    if not _is_libfabric(network, facts):
        return []
    why = (
        "so aws-ofi-nccl calls its network: where NCCL can't use it the launch fails instead of "
        "taking sockets"
    )
    return [Reason(variable=_NET, value=LIBFABRIC, why=why)]


def plugin_notes(network: AskedNetwork, facts: PodFacts) -> Iterator[str]:
    """What is not known, and what the user set against it."""
    net = facts.given.get(_NET)
    if net is not None and net.lower() in _OF_NCCL:
        yield f"{_NET}={net} is kept, though `{network.transport}` is asked for"
    is_held = net is not None or _is_libfabric(network, facts)
    if not facts.hardware.network_plugins:
        then = "fails" if is_held else "takes sockets without a word"
        yield f"no libnccl-net*.so was found on the library path: if none is there, NCCL {then}"
    if not is_held:
        yield (
            f"what the plugin calls its network is not known here, so NCCL is not held to it: "
            f"only its log can prove that it was `{network.transport}`"
        )
    driver = _DRIVERS.get(network.transport or "")
    if driver is not None and driver not in (drivers := _drivers(facts)) and None in drivers:
        yield f"whether an adapter has the driver {driver} can't be seen here"
    if network.transport == "omnipath" and not _has_file("hfi1_", facts):
        yield "no file /dev/hfi1_* is in this container, which PSM2 opens"


def unused_notes(facts: PodFacts) -> Iterator[str]:
    """Where no transport was asked for, and sockets are taken."""
    adapters = [hca.name for hca in facts.hardware.hcas if hca.driver == "efa"]
    if adapters:
        yield f"EFA is here and not used ({', '.join(adapters)}): `transport: efa` asks for it"


def _is_libfabric(network: AskedNetwork, facts: PodFacts) -> bool:
    """Is it sure that the plugin is aws-ofi-nccl? The user may have named another."""
    named = [each.value for each in facts.hardware.variables if each.name == _PLUGIN]
    return network.transport in _BY_LIBFABRIC and all("ofi" in each for each in named if each)


def _drivers(facts: PodFacts) -> "set[str | None]":
    return {hca.driver for hca in facts.hardware.hcas}


def _has_file(beginning: str, facts: PodFacts) -> bool:
    return any(name.startswith(beginning) for name in facts.fabric_files)
