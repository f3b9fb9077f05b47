"""Proves that no content of the kernel's files, no status and no network stops `resolve`, and laws
of what it gives."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.agent.hardware.test_any_content import CONTENTS, PLACES, changed
from tests.agent.pod import pods
from tests.costly import costly

from broadgauge.agent.pod.gids import index_that_nccl_takes
from broadgauge.agent.pod.network_words import describe, describe_pod, refused
from broadgauge.agent.pod.rdma_plugins import BY_PLUGIN
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.messages.asked_network import AskedAttachment, AskedNetwork
from broadgauge.messages.hardware import GidFacts, HcaPort

ATTACHMENTS = ("default/net-1", "default/net-2")
STATUS = pods.status(*(pods.entry(n, f"default/net-{n}", f"10.{n}.0.5") for n in (1, 2)))
TRANSPORTS = (None, "tcp", "overlay", "roce", "infiniband", "efa", "tcpx", "nonsense")
SUBNETS = st.sampled_from(["10.1.0.0/24", "10.0.0.0/8", "nonsense", "::/0"])
ATTACHED = st.builds(
    AskedAttachment,
    definition=st.sampled_from([*ATTACHMENTS, "x", ""]),
    interface=st.just("net1"),
    subnets=st.lists(SUBNETS, max_size=2).map(tuple),
    is_name_sure=st.booleans(),
)
NETWORKS = st.builds(
    AskedNetwork,
    name=st.just("fabric"),
    attachments=st.lists(ATTACHED, max_size=3).map(tuple),
    num_nics=st.integers(-1, 3),
    transport=st.sampled_from(TRANSPORTS),
    gpudirect=st.sampled_from([None, True, False]),
)


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    root = tmp_path_factory.mktemp("pod")
    machine = pods.vf_pod(root, ["10.1.0.5/24", "10.2.0.5/24"], gpus=2)
    machine.file("/proc/net/if_inet6", "fd" + "0" * 30 + " 04 40 00 82 net1\n")
    machine.files("/sys/class/infiniband/mlx5_10/ports/1/counters", {"port_xmit_data": 1})
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return root, files


def all_of(root: Path, network: AskedNetwork, status: str = STATUS) -> ResolvedNetwork:
    facts = pods.facts_of(root, status)
    resolved = resolve(network, facts)
    list(describe(resolved, facts))
    list(describe_pod(facts))
    list(refused(resolved))
    return resolved


@costly(60)
@given(number=st.integers(0, 10**6), content=CONTENTS, network=NETWORKS)
def test_any_content_of_any_file(
    pod: tuple[Path, list[Path]], number: int, content: bytes, network: AskedNetwork
) -> None:
    root, files = pod
    with changed(files[number % len(files)], content):
        all_of(root, network)


@pytest.mark.parametrize("kind", PLACES)
def test_what_is_no_file(pod: tuple[Path, list[Path]], kind: str) -> None:
    root, files = pod
    network = pods.asked("roce", *ATTACHMENTS)
    for path in files[::18]:
        with changed(path, kind):
            all_of(root, network)


@costly(60)
@example(network=pods.asked("tcp", *ATTACHMENTS, subnets=("10.1.0.0/24", "::/0")), status=STATUS)
@given(network=NETWORKS, status=st.one_of(st.just(STATUS), st.just(""), st.text(max_size=40)))
def test_what_is_not_refused_has_all_that_it_needs(
    pod: tuple[Path, list[Path]], network: AskedNetwork, status: str
) -> None:
    resolved = all_of(pod[0], network, status)
    assert resolved.variables == {
        each.variable: each.value for each in resolved.reasons if each.value is not None
    }
    assert len({each.variable for each in resolved.reasons}) == len(resolved.reasons)
    if resolved.problems:
        return
    assert len(resolved.interfaces) == len(resolved.addresses)
    if not network.is_pod_network and network.transport not in BY_PLUGIN:
        assert len(resolved.interfaces) == max(1, len(network.attachments))
    assert len(set(resolved.interfaces)) == len(resolved.interfaces)
    assert resolved.variables["NCCL_SOCKET_IFNAME"] == "=" + ",".join(resolved.interfaces)
    if network.transport in ("roce", "infiniband"):
        number = max(1, network.num_nics) if network.is_pod_network else len(network.attachments)
        assert len(resolved.adapters) == number
        assert resolved.variables["NCCL_NET"] == "IB"
        assert len(resolved.pairs) == 2


ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "10.0.0.1", "10.0.0.2", "10.9.0.1"]),
        st.sampled_from([None, "IB/RoCE v1", "RoCE v2"]),
    ),
    max_size=8,
)


@given(ROWS, st.sampled_from([None, "10.0.0.0/24", "10.0.0.1/32"]))
def test_nccls_own_choice(rows: list[tuple[str | None, str | None]], within: str | None) -> None:
    """A plain reading of its rules: of IPv4 and within the range, the first of RoCE v2, else the
    first at all; index 0 counts as taken before any rule."""
    port = HcaPort(
        number=1,
        state=None,
        physical_state=None,
        rate_gbps=None,
        link_layer="Ethernet",
        gids=tuple(
            GidFacts(index=index, gid="", kind=kind, ipv4=ipv4)
            for index, (ipv4, kind) in enumerate(rows)
            if index > 0  # as usual, that of the link: no IPv4 address
        ),
    )
    prefix = {None: "10.", "10.0.0.0/24": "10.0.0.", "10.0.0.1/32": "10.0.0.1"}[within]
    fits = [
        (index, kind)
        for index, (ipv4, kind) in enumerate(rows)
        if index > 0 and ipv4 is not None and ipv4.startswith(prefix)
    ]
    second = [index for index, kind in fits if kind == "RoCE v2"]
    expected = [*second, *(index for index, _ in fits), 0][0]
    assert index_that_nccl_takes(port, within) == expected
