"""Proves specs/networks/pod_networks.py and ipam.py: what no cluster could do is refused
where it is written."""

import pytest

from broadgauge.specs.base import AS_STORED
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import SecondaryNetwork
from broadgauge.specs.text.reading import read_experiment

TEXT = """\
name: small
cluster: {shapes: [1x2, 2x2], device: cuda}
networks:
  - name: net
    kubernetes: {face}
workloads: [{kind: collectives, ops: [all_reduce], sizes: [1 MiB]}]
"""


def read(face: str) -> Network:
    (network,) = read_experiment(TEXT.replace("{face}", face), "a.yaml").networks
    assert isinstance(network, Network)
    return network


@pytest.mark.parametrize(
    ("face", "key", "words"),
    [
        ("macvlan", "kubernetes", ["`macvlan` needs `devices`", "one a NIC"]),
        ("{attachment: brige, devices: a}", "kubernetes",
         ["`attachment` can't be `brige`", "`bridge`?"]),
        ("{attachment: macvlan, devises: a}", "devises", ["unknown key `devises`", "`devices`?"]),
        ("{attachement: macvlan, devices: a}", "attachement",
         ["unknown key `attachement`", "did you mean `attachment`?"]),
        ("{devices: a}", "kubernetes", ["`attachment` is missing", "host-device"]),
        ("{attachment: macvlan, devices: [a, a]}", "a]}",
         ["two NICs over one interface: `a` stands twice"]),
        ("{attachment: macvlan, devices: a, transport: roce}", "kubernetes",
         ["`roce` without `resources`", "kubectl describe node"]),
        ("{attachment: sriov, resources: openshift.io/}", "resources", ["`openshift.io/` is none"]),
        ("sriov", "kubernetes", ["`sriov` needs `resources`", "SriovNetworkNodePolicy"]),
        ("{attachment: device-plugin, resources: rdma/ib}", "kubernetes",
         ["no interface", "`infiniband`"]),
        ("{attachment: device-plugin, resources: rdma/ib, transport: roce, ipam: dhcp}", "ipam",
         ["attaches no interface"]),
        ("{attachment: existing}", "kubernetes", ["needs `definitions`"]),
        ("{attachment: existing, definitions: A_b}", "definitions", ["`A_b` is none"]),
        ("{attachment: existing, definitions: a, mtu_bytes: 9000}", "mtu_bytes",
         ["the MTU is what is"]),
        ("{attachment: existing, definitions: a, ipam: dhcp}", "ipam", ["says itself where"]),
        ("{attachment: existing, definitions: a, devices: e}", "devices",
         ["say nothing to `existing`"]),
        ("{attachment: macvlan, devices: a, definitions: other/net}", "definitions",
         ["in another namespace", "existing"]),
        ("{attachment: macvlan, devices: a, mode: l2}", "mode",
         ["no mode of `macvlan`", "passthru"]),
        ("{attachment: host-device, devices: a, mode: l2}", "mode", ["of macvlan and ipvlan"]),
        ("{attachment: ipvlan, devices: a}", "kubernetes", ["`ipvlan` needs an `ipam`"]),
        ("{attachment: sriov, transport: infiniband, resources: rdma/a, ipam: dhcp}", "transport",
         ["not InfiniBand's", "`ib-sriov`"]),
        ("{attachment: pod, transport: roce}", "transport", ["no RDMA", "device-plugin"]),
        ("{attachment: pod, gpudirect: true}", "gpudirect", ["needs a `transport` of RDMA"]),
        ("{attachment: macvlan, devices: a, ipam: dhcp, rdma_namespace: exclusive}",
         "rdma_namespace", ["moves no adapter"]),
        ("{attachment: host-device, devices: a, resources: a/b, ipam: dhcp,"
         " rdma_namespace: exclusive}", "rdma_namespace",
         ["the PCI address that a device plugin chose"]),
        ("{attachment: host-device, devices: a, ipam: {kind: whereabouts}}", "ipam",
         ["`whereabouts` needs `ranges`"]),
        ("{attachment: host-device, devices: a, ipam: {kind: dhcp, ranges: 10.0.0.0/24}}", "ranges",
         ["`ranges` says nothing to `dhcp`"]),
        ("{attachment: host-device, devices: a, ipam: {kind: whereabouts, ranges: 10.0.0.7/24}}",
         "ranges", ["`10.0.0.7/24` is an address within 10.0.0.0/24"]),
        ("{attachment: host-device, devices: a, ipam: {kind: whereabouts, ranges: 10.0.0.0}}",
         "ranges", ["how many addresses? `10.0.0.0/24`"]),
        ("{attachment: host-device, devices: a, ipam: {kind: whereabouts,"
         " ranges: [10.0.0.0/24, 10.0.0.128/25]}}", "10.0.0.128",
         ["10.0.0.0/24 and 10.0.0.128/25 overlap", "a subnet of its own"]),
        ("{attachment: host-device, devices: a, ipam: {kind: whereabouts, ranges: 10.0.0.0/24,"
         " gateway: 10.1.0.1}}", "gateway", ["10.1.0.1 is in none of the ranges"]),
        ("{attachment: ib-sriov, resources: a/b, transport: roce, ipam: dhcp}", "transport",
         ["`ib-sriov` is of InfiniBand's"]),
        ("{attachment: macvlan, devices: a}", "kubernetes",
         ["TCP needs an address", "whereabouts"]),
        ("{attachment: macvlan, devices: a, transport: roce, resources: a/b}", "kubernetes",
         ["RoCE over a `macvlan` needs an address"]),
        ("{attachment: macvlan, devices: a, transport: roce, resources: a/b,"
         " ipam: {kind: whereabouts, ranges: fd12::/64}}", "ranges", ["addresses of IPv4"]),
        ("{attachment: macvlan, devices: lo}", "devices", ["`lo` is none", "like `ens13`"]),
        ("{attachment: sriov, resources: a/b, ipam: {kind: address-map, map: m}}", "kubernetes",
         ["names NICs by the node's `devices`"]),
    ],
)  # fmt: skip
def test_what_cant_be_is_refused_with_its_place(face: str, key: str, words: list[str]) -> None:
    with pytest.raises(ExperimentError) as caught:
        read(face)
    told = str(caught.value)
    column = TEXT.replace("{face}", face).splitlines()[4].index(key) + 1
    assert f"a.yaml:5:{column}:" in told, told
    assert all(word in told for word in words), told


WITHIN = "{attachment: host-device, devices: [a, b], ipam: {kind: whereabouts, ranges: "


@pytest.mark.parametrize(
    ("subnet", "words"),
    [
        ("10.2.0.0/255.255.255.0", "`/255.255.255.0` is no number of bits, as in `10.2.0.0/24`"),
        ("10.2.0.0/0.0.0.255", "`/0.0.0.255` is no number of bits"),
        ("10.2.0.0/024", "`/024` is no number of bits"),
        ("10.2.0.0/", "`/` is no number of bits"),
        ("10.2.0.0/33", "33"),
        ("fd00::/ffff::", "`/ffff::` is no number of bits, as in `fd00::/64`"),
        ("fd00::", "how many addresses? `fd00::/64`"),
        ("fd00::%eth0/64", "`fd00::%eth0` has a scope, which is one machine's: `fd00::`"),
        ("::ffff:10.0.0.0/120", "it is IPv4 written as IPv6, and no NIC has an address of it"),
        ("0.0.0.0/0", "one of IPv4 has 8 bits or more"),
        ("10.0.0.0/7", "one of IPv4 has 8 bits or more"),
        ("::/0", "one of IPv6 has 32 bits or more"),
        ("fd00::/31", "one of IPv6 has 32 bits or more"),
        ("0.0.0.0/8", "0/8 is no host's"),
        ("127.0.0.0/24", "127/8 is the loopback's"),
        ("169.254.7.0/24", "169.254/16 is link-local"),
        ("169.0.0.0/8", "169.254/16 is link-local"),
        ("224.1.0.0/16", "224/4 is of multicast"),
        ("240.0.0.0/8", "240/4 is reserved"),
        ("::1/128", "the loopback's ::1"),
        ("fe80::/64", "fe80::/10 is link-local"),
        ("ff02::/64", "ff00::/8 is of multicast"),
    ],
)
@pytest.mark.parametrize("key", ["ranges", "exclude"])
def test_what_is_no_subnet_of_nics_is_refused(subnet: str, words: str, key: str) -> None:
    face = f"{WITHIN}10.9.0.0/24, exclude: '{subnet}'}}}}"
    if key == "ranges":
        face = f"{WITHIN}['10.9.0.0/24', '{subnet}']}}}}"
    with pytest.raises(ExperimentError, match=r"a\.yaml:5:\d+: .*no subnet: ") as caught:
        read(face)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("rest", "key", "words"),
    [
        ("10.0.0.0/24, gateway: 10.0.0.0", "gateway",
         ["the gateway can't be 10.0.0.0: it is the address of the subnet 10.0.0.0/24"]),
        ("10.0.0.0/24, gateway: 10.0.0.255", "gateway",
         ["it is the broadcast address of 10.0.0.0/24", "the router's own"]),
        ("'fd00::/64', gateway: 'fd00::'", "gateway", ["the address of the subnet fd00::/64"]),
        ("'fd00::/64', gateway: 'fd00::1%eth0'", "gateway", ["no address: ", "has a scope"]),
        ("10.0.0.0/24, gateway: '::ffff:10.0.0.1'", "gateway",
         ["no address: `::ffff:10.0.0.1`: it is IPv4 written as IPv6"]),
        ("10.0.0.0/24, exclude: [10.0.0.0/28, 10.0.1.0/28]", "10.0.1.0/28",
         ["10.0.1.0/28 is in none of the ranges", "a part of 10.0.0.0/24"]),
        ("10.0.0.0/24, exclude: 'fd00::/64'", "exclude", ["fd00::/64 is in none"]),
    ],
)  # fmt: skip
def test_what_fits_no_range_is_refused_with_its_place(
    rest: str, key: str, words: list[str]
) -> None:
    face = WITHIN + rest + "}}"
    with pytest.raises(ExperimentError) as caught:
        read(face)
    told = str(caught.value)
    column = TEXT.replace("{face}", face).splitlines()[4].index(key) + 1
    assert f"a.yaml:5:{column}:" in told, told
    assert all(word in told for word in words), told


def test_static_takes_no_gateway() -> None:
    """Its plugin is told addresses by the capability `ips` alone."""
    with pytest.raises(ExperimentError, match="`gateway` says nothing to `static`"):
        read(WITHIN.replace("whereabouts", "static") + "10.0.0.0/24, gateway: 10.0.0.1}}")


@pytest.mark.parametrize(
    "rest",
    ["10.0.0.0/8, exclude: 10.0.0.0/8", "'fd00::/32', gateway: 'fd00::ffff'",
     "[10.0.0.0/24, 10.1.0.0/24], gateway: 10.1.0.1, exclude: [10.1.0.5/32, 10.0.0.0/16]"],
)  # fmt: skip
def test_what_can_be_is_taken(rest: str) -> None:
    assert read(WITHIN + rest + "}}").kubernetes is not None


def test_a_stored_case_has_the_ranges_of_its_own_nics() -> None:
    rest = "[10.0.0.0/24, 10.1.0.0/24], gateway: 10.1.0.1, exclude: 10.1.0.8/29}}"
    case = read(WITHIN + rest).on_nodes(2)
    stored = case.model_dump(mode="json", exclude_defaults=True)
    assert Network.model_validate(stored, context=AS_STORED) == case


def test_a_case_has_the_first_so_many_nics() -> None:
    face = "{attachment: sriov, resources: [a/r0, a/r1], transport: roce,"
    network = read(face + " ipam: {kind: whereabouts, ranges: [10.0.0.0/24, 10.0.1.0/24]}}")
    one, two = (
        network.model_copy(update={"nics_per_node": nics}).on_nodes(2).kubernetes for nics in (1, 2)
    )
    assert isinstance(one, SecondaryNetwork)
    assert isinstance(two, SecondaryNetwork)
    assert (one.resources, two.resources) == (("a/r0",), ("a/r0", "a/r1"))
    assert one.ipam is not None
    assert one.ipam.ranges == ("10.0.0.0/24",)


def test_transport_and_gpudirect_are_axes_so_that_effects_separate() -> None:
    """The twins of an RDMA network: on the same interface TCP forced, and without GPUDirect."""
    text = TEXT.replace(
        "{face}",
        "{attachment: existing, definitions: a, resources: a/b, transport: [roce, tcp]}",
    )
    names = [each.name for each in read_experiment(text, "a.yaml").networks]
    assert names == ["net-transport-roce", "net-transport-tcp"]
    text = text.replace("[roce, tcp]", "roce, gpudirect: [true, false]")
    labels = [each.label for each in read_experiment(text, "a.yaml").networks]
    assert labels == [
        "net-gpudirect-true, existing a, RoCE with GPUDirect",
        "net-gpudirect-false, existing a, RoCE without GPUDirect",
    ]
