"""Any legal `kubernetes:` face of a secondary network, for property tests."""

from typing import Any

from hypothesis import strategies as st

from broadgauge.manifests.definitions import Definitions
from broadgauge.manifests.interfaces import Attachments, attach
from broadgauge.specs.networks.network import Network

MOST_NICS = 4
NAMES = st.from_regex(r"[a-z][a-z0-9]{1,8}", fullmatch=True)
RESOURCES = st.from_regex(r"[a-z]{1,8}\.io/[a-z]([a-z0-9_]{0,8}[a-z0-9])?", fullmatch=True)
RDMA = ("roce", "infiniband", "efa")


def several(names: st.SearchStrategy[str], number: int) -> st.SearchStrategy[list[str]]:
    return st.lists(names, min_size=number, max_size=number, unique=True)


@st.composite
def subnets(draw: st.DrawFn, number: int) -> list[str]:
    """Apart from each other, of a /24 each or larger."""
    blocks = draw(st.lists(st.integers(0, 250), min_size=number, max_size=number, unique=True))
    return [f"10.{block}.0.0/{draw(st.integers(16, 24))}" for block in blocks]


@st.composite
def ipams(draw: st.DrawFn, kinds: tuple[str, ...], number: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(kinds))
    found: dict[str, Any] = {"kind": kind}
    if kind == "whereabouts":
        found["ranges"] = draw(subnets(number))
        first = found["ranges"][0].rpartition(".")[0]
        if draw(st.booleans()):
            found["gateway"] = f"{first}.1"
        if draw(st.booleans()):
            found["exclude"] = [f"{first}.0/28"]
    elif kind == "nv-ipam":
        found["pools"] = draw(several(NAMES, draw(st.sampled_from([1, number]))))
    return found


@st.composite
def faces(draw: st.DrawFn, nics: int) -> dict[str, Any]:
    """Of so many NICs, as an experiment has it."""
    kind = draw(
        st.sampled_from(
            [
                *("host-device", "macvlan", "ipvlan", "bridge"),
                *("sriov", "ib-sriov", "existing", "device-plugin"),
            ]
        )
    )
    face: dict[str, Any] = {"attachment": kind}
    by_plugin = kind in ("sriov", "ib-sriov", "device-plugin") or (
        kind == "host-device" and draw(st.booleans())
    )
    over_a_device = kind in ("macvlan", "ipvlan", "bridge")
    never = {"infiniband"} if over_a_device or kind == "sriov" else set()
    never |= {"roce"} if kind == "ib-sriov" else set()
    transports = [each for each in RDMA if each not in never]
    has_rdma = kind == "device-plugin" or draw(st.booleans())
    if has_rdma:
        face["transport"] = draw(st.sampled_from(transports))
        face["gpudirect"] = draw(st.sampled_from([None, True, False]))
    if by_plugin or has_rdma:
        face["resources"] = draw(several(RESOURCES, draw(st.sampled_from([1, nics]))))
    if kind in ("host-device", "macvlan", "ipvlan", "bridge") and not by_plugin:
        face["devices"] = draw(several(NAMES, nics))
    if kind == "existing":
        face["definitions"] = draw(several(NAMES, nics))
    elif kind != "device-plugin" and draw(st.booleans()):
        face["definitions"] = draw(several(NAMES.map("d-{}".format), nics))
    if kind in ("macvlan", "ipvlan") and draw(st.booleans()):
        modes = {"macvlan": ["bridge", "vepa", "private"], "ipvlan": ["l2", "l3", "l3s"]}
        face["mode"] = draw(st.sampled_from(modes[kind]))
    if kind not in ("existing", "device-plugin"):
        if draw(st.booleans()):
            face["mtu_bytes"] = draw(st.integers(576, 65_000))
        is_without = has_rdma and not (over_a_device and face["transport"] == "roce")
        needs = kind == "ipvlan" or not is_without
        if needs or draw(st.booleans()):
            some = ("whereabouts", "nv-ipam", "dhcp")
            face["ipam"] = draw(ipams(some if needs else (*some, "none"), nics))
    if by_plugin and kind != "device-plugin" and draw(st.booleans()):
        face["rdma_namespace"] = draw(st.sampled_from(["shared", "exclusive"]))
    return face


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    nics = draw(st.integers(1, MOST_NICS))
    return {"name": "net", "nics_per_node": nics, "kubernetes": draw(faces(nics))}


def on_pods(network: dict[str, Any], num_pods: int = 2) -> Network:
    """As a case has it."""
    return Network.model_validate(network).as_found_on("kubernetes").on_nodes(num_pods)


def attached(*networks: dict[str, Any], num_pods: int = 2) -> tuple[Attachments, Definitions]:
    """To the pods of one job, without an address map."""
    definitions = Definitions("demo")
    found = attach([on_pods(each, num_pods) for each in networks], definitions, ())
    return found, definitions
