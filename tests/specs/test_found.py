"""An entry of `networks` may say where it is found, and run there, or be emulated, or both."""

from typing import Any

import pytest
from pydantic import ValidationError

from broadgauge.specs.found import Found
from broadgauge.specs.network import Network


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
    assert both.as_found() == network(found={"interface": "eth1"})
    assert both.as_found().label == "pod, found at eth1"
    assert both.as_emulated() == network(rate_gbps=1.0, mtu_bytes=9000)


def test_an_entry_that_is_only_found_is_emulated_nowhere() -> None:
    assert not network(found={"subnet": "10.0.1.0/24"}).has_emulated_face
    assert network().has_emulated_face
