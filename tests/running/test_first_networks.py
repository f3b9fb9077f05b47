"""Which of a cluster's definitions become networks of a first experiment, and what is said?"""

from pathlib import Path

import pytest
from tests.platforms.kubernetes.inventory.made_up import inventory
from tests.running.first_on_cluster import device, faces, loaded, of_networks, written


@pytest.mark.parametrize(
    "names",
    [
        ("default/foo-1", "default/foo-2", "default/foo-nics", "training/foo-nics"),
        (
            "default/abcdefgh-nicsxyz",
            "training/abcdefgh-nicsxyz",
            "training/abcdefgh-1",
            "training/abcdefgh-2",
        ),
        ("training/foo-nics-nics-2", "training/foo-1", "training/foo-2"),
    ],
)
def test_no_network_is_named_as_another_of_so_many_nics(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    found = [each.split("/") for each in names]
    items = [
        device(name, f"ens{number}", space=space, ipam={"type": "whereabouts"})
        for number, (space, name) in enumerate(found)
    ]
    assert faces(loaded(written(inventory(of_networks(items))), tmp_path))
