"""Which addresses does a first experiment's map have, and which does it leave to whoever knows?"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.inventory.made_up import answers, inventory
from tests.running.first_on_cluster import faces, loaded, written

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.running.experiments import load_text
from broadgauge.running.first_networks import MAP_FILE
from broadgauge.running.rendering.experiment import render_experiment


def cidrs(data: dict[str, Any], *addresses: str) -> None:
    """To each node, with its number: worker-1 is the second."""
    for number, node in enumerate(data["nodes"]["items"]):
        told = [each.format(number) for each in addresses]
        node["metadata"]["annotations"]["k8s.ovn.org/host-cidrs"] = json.dumps(told)


def test_several_addresses_are_not_guessed_at(tmp_path: Path) -> None:
    """The network stands as a comment, with a map to be filled in."""
    data = answers("vpc")
    cidrs(data, "10.240.1.{}/24", "10.249.1.{}/24", "10.249.2.{}/24", "169.254.0.2/17")
    found = written(inventory(data))
    assert "network-port-01" not in faces(loaded(found, tmp_path))
    assert "  # - name: network-port-01\n" in found.text
    assert found.address_map is not None
    assert "# worker-1:ens13:net1:ADDRESS" in found.address_map
    assert "10.249.1.1/24, 10.249.2.1/24: which device has which" in found.address_map
    assert "# interface is what a pod will call it: Multus" in found.address_map
    assert "169.254" not in found.address_map
    assert any("the fabric gave to ens13" in each for each in found.missing)


def test_a_services_address_is_no_nics(tmp_path: Path) -> None:
    """keepalived gives it to the node that has the service now."""
    data = answers("vpc")
    cidrs(data, "10.240.1.{}/24", "10.249.65.{}/26", "10.240.1.100/32")
    found = written(inventory(data))
    assert found.address_map is not None
    assert "10.240.1.100" not in found.address_map
    assert "network-port-01" in faces(loaded(found, tmp_path))


def test_two_nodes_with_one_address_have_it_not_both(tmp_path: Path) -> None:
    data = answers("vpc")
    cidrs(data, "10.240.1.{}/24", "10.249.65.9/26")
    found = written(inventory(data))
    assert "network-port-01" not in faces(loaded(found, tmp_path))


def test_a_comment_that_is_taken_in_is_an_entry(tmp_path: Path) -> None:
    """Once the map is filled in."""
    data = answers("vpc")
    cidrs(data, "10.240.1.{}/24", "10.249.1.{}/24", "10.249.2.{}/24")
    found = written(inventory(data))
    at = found.text.index("  # - name: network-port-01")
    entry = found.text[at:].split("nodename_ip_mapping.yaml", 1)[0]
    text = found.text.replace(entry, entry.replace("  # ", "  "), 1)
    (tmp_path / MAP_FILE).write_text("worker-1:ens13:net1:10.9.0.1\nworker-2:ens13:net1:10.9.0.2\n")
    experiment = load_text(text, tmp_path / "experiment.yaml", ())
    assert faces(experiment.experiment)["network-port-01"].is_mapped_existing
    assert render_experiment(experiment).jobs


def addresses(data: dict[str, Any], *told: str) -> None:
    """The status's, to each node, with its number."""
    for number, node in enumerate(data["nodes"]["items"]):
        node["metadata"]["annotations"] = {}
        node["status"]["addresses"] = [
            {"type": "InternalIP", "address": each.format(number)} for each in told
        ]


@pytest.mark.parametrize("told", [("fd00::{}", "10.0.0.{}"), ("fd00::{}",)])
def test_a_nodes_own_address_is_not_its_devices_whichever_comes_first(
    told: tuple[str, ...], tmp_path: Path
) -> None:
    data = answers("vpc")
    addresses(data, *told)
    cidrs(data, "10.0.0.{}/24")
    found = written(inventory(data))
    assert "network-port-01" not in faces(loaded(found, tmp_path))
    assert "10.0.0." not in (found.address_map or "")


def test_an_address_that_several_nodes_have_is_nobodys(tmp_path: Path) -> None:
    """A bridge's inside of each."""
    data = answers("vpc")
    cidrs(data, "10.240.1.{}/24", "192.168.122.1/24")
    assert "192.168.122.1" not in (written(inventory(data)).address_map or "")
    cidrs(data, "10.240.1.{}/24", "192.168.122.1/24", "10.249.65.{}/26")
    found = written(inventory(data))
    assert "network-port-01" in faces(loaded(found, tmp_path))
    assert "worker-1:ens13:net1:10.249.65.1/26" in (found.address_map or "")


@pytest.mark.parametrize("is_told", [True, False])
def test_a_length_that_is_not_told_is_said_to_be_assumed(is_told: bool, tmp_path: Path) -> None:
    data = answers("vpc")
    if is_told:
        cidrs(data, "10.240.1.{}/24", "10.249.65.{}/24")
    else:
        addresses(data, "10.240.1.{}", "10.249.65.{}")
    found = written(inventory(data))
    assert "network-port-01" in faces(loaded(found, tmp_path))
    assert found.address_map is not None
    assert [row.address.network.prefixlen for row in parse_map(found.address_map)] == [24, 24]
    assert ("/24 is assumed" in found.address_map) != is_told
    assert any("/24 is assumed" in each for each in found.notes) != is_told
