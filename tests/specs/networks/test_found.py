"""An entry of `networks` may say where it is found, and run there, or be emulated, or both."""

from typing import Any

import pytest
from pydantic import ValidationError

from broadgauge.specs.networks.found import Found
from broadgauge.specs.networks.network import Network


def network(**keys: Any) -> Network:
    return Network.model_validate({"name": "pod", **keys})


def test_exactly_one_way_says_where_it_is() -> None:
    assert Found(interface="eth1").interface == ("eth1",)
    for wrong in ({}, {"interface": "eth1", "subnet": "10.0.0.0/8"}, {"subnet": "10.0.0.1/8"}):
        with pytest.raises(ValidationError, match=r"exactly one|no subnet"):
            Found.model_validate(wrong)


@pytest.mark.parametrize("name", ["eth1,eth2", "=eth1", "a b", "", "a-name-of-16-chr"])
def test_a_name_that_gloo_or_nccl_would_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Found.model_validate({"interface": name})


def test_where_it_is_found_nothing_is_claimed_of_what_we_would_have_set() -> None:
    both = network(rate_gbps=1.0, mtu_bytes=9000, found={"interface": "eth1"})
    assert both.has_emulated_face
    assert both.as_found_on("hosts") == network(found={"interface": "eth1"})
    assert both.as_found_on("hosts").label == "pod, found at eth1"
    assert both.as_emulated() == network(rate_gbps=1.0, mtu_bytes=9000)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"transport": "roce"}, "RoCE"),
        ({"transport": "infiniband", "gpudirect": True}, "InfiniBand with GPUDirect"),
        ({"transport": "roce", "gpudirect": False}, "RoCE without GPUDirect"),
        ({"transport": "tcp"}, "TCP"),
    ],
)
def test_the_way_it_is_meant_to_send_is_in_its_label(keys: dict[str, Any], words: str) -> None:
    fabric = network(found={"interface": "ib0", "nominal_gbps": 400, **keys}).as_found_on("hosts")
    assert fabric.label == f"pod, found at ib0, nominal 400 Gbit/s, {words}"
    assert fabric.is_meant_as_rdma == (words != "TCP")
    assert not network(rate_gbps=1, found={"interface": "ib0"}).as_emulated().is_meant_as_rdma


@pytest.mark.parametrize("transport", [None, "tcp", "overlay"])
def test_gpudirect_is_of_rdma(transport: str | None) -> None:
    keys = {"interface": "ib0", "transport": transport, "gpudirect": True}
    with pytest.raises(ValidationError, match="`gpudirect` needs a `transport` of RDMA"):
        Found.model_validate(keys)


def test_an_unknown_transport_is_refused() -> None:
    with pytest.raises(ValidationError, match="roce"):
        Found.model_validate({"interface": "ib0", "transport": "rocee"})


def test_an_entry_that_is_only_found_is_emulated_nowhere() -> None:
    assert not network(found={"subnet": "10.0.1.0/24"}).has_emulated_face
    assert network().has_emulated_face
