"""Proves catalog/catalog.py and reading.py: the user's entries, their places, and their errors."""

from pathlib import Path

import pytest

from broadgauge.catalog.catalog import load_catalog
from broadgauge.specs.errors import ExperimentError, InputError

MINE = """\
networks:
  - name: our-vnic
    aliases: [pod]
    transport: virtio
    typical_gbyte_per_s: {value: 2.1, low: 2.0, high: 2.2}
    source: measured here with broadgauge calibrate
    date: 2026-11-21
nodes:
  - name: ours
    provider: us
    gpu: h100-sxm
    gpus_per_node: 8
    networks: [our-vnic]
prices:
  - {name: ours, node: ours, price_usd_per_hour: 8, source: our own books, date: 2026-11-01}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE)
    return path


def test_the_users_entries_come_first_and_their_networks_take_the_prior(mine: Path) -> None:
    catalog = load_catalog([mine])
    network = catalog.network("our-vnic")
    assert network.carried().gbyte_per_s == 2.1
    assert network.latency_s == catalog.network("vnic-100g").latency_s
    assert catalog.node("ours").gpu == "h100-sxm"
    assert catalog.network("roce-400g*8").nics == 8
    assert catalog.replaced == ()
    assert catalog.where("networks", network) == f"{mine}:2:5"


def test_an_entry_of_a_shipped_name_replaces_it_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(MINE.replace("our-vnic", "vnic-100g"))
    catalog = load_catalog([path])
    assert catalog.network("vnic-100g").carried().gbyte_per_s == 2.1
    assert len(catalog.networks) == len(load_catalog().networks)
    (replaced,) = catalog.replaced
    assert str(replaced) == f"{path}:2:5: networks `vnic-100g` replaces the shipped entry"
    assert catalog.replaced_words() == (f"{path} replaces network vnic-100g of the catalog",)


def test_what_two_files_replace_is_said_of_the_one_that_is_used(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        MINE.replace("our-vnic", "vnic-100g").replace("ours\n    p", "dgx-h100\n    p")
    )
    second.write_text(MINE.replace("our-vnic", "vnic-100g"))
    assert load_catalog([first, second]).replaced_words() == (
        f"{second} replaces network vnic-100g of the catalog",
        f"{first} replaces node dgx-h100 of the catalog",
    )


def test_two_entries_of_a_name_in_one_file_are_refused_with_both_places(tmp_path: Path) -> None:
    """A name may stand in several kinds, as `ours` does, once in each."""
    path = tmp_path / "mine.yaml"
    again = "  - {name: our-vnic, transport: virtio, nominal_gbps: 50}\n"
    path.write_text(MINE.replace("nodes:\n", f"{again}nodes:\n"))
    with pytest.raises(ExperimentError) as refused:
        load_catalog([path])
    assert str(refused.value) == (
        f"{path}:8:5: `networks` has `our-vnic` twice: the first is at {path}:2:5\n"
        "  hint: leave one of them out, or give it another name"
    )


def test_the_later_file_wins(mine: Path, tmp_path: Path) -> None:
    later = tmp_path / "later.yaml"
    later.write_text(MINE.replace("value: 2.1", "value: 2.15"))
    assert load_catalog([mine, later]).network("our-vnic").carried().gbyte_per_s == 2.15


def test_a_gpus_price_is_the_nodes_share_else_the_lowest(mine: Path) -> None:
    catalog = load_catalog([mine])
    price = catalog.gpu_price("h100", "ours")
    assert price is not None
    assert price.price_usd_per_hour == 1
    named = catalog.gpu_price("h100", "p5.48xlarge")
    assert named is not None
    assert named.price_usd_per_hour == pytest.approx(55.04 / 8)
    lowest = catalog.gpu_price("h100")
    assert lowest is not None
    assert lowest.price.name == "ours"
    assert catalog.gpu_price("rtx-3090") is None


def test_a_name_of_several_kinds_gives_all(mine: Path) -> None:
    kinds = [kind for kind, _ in load_catalog([mine]).named("ours")]
    assert kinds == ["nodes", "prices"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpuss: []", r"mine.yaml:1:1: unknown kind `gpuss`\n  hint: did you mean `gpus`"),
        ("- a", "mapping of kinds"),
        ("gpus: 3", "`gpus` takes a list"),
        ("gpus: [3]", "an entry is a mapping"),
        ("nodes:\n  - {name: a, gpu: b, gpus_per_node: 8}", "mine.yaml:2:5: `provider` is missing"),
        (MINE.replace("transport:", "transprot:"), "did you mean `transport`"),
        (MINE.replace("value: 2.1", "value: 9"), "order"),
        (
            MINE.replace("value: 2.1", "value: -1"),
            r"mine.yaml:5:27: `typical_gbyte_per_s.value` takes a number above 0, not `-1`",
        ),
        (MINE.replace("virtio", "smoke"), "`transport`"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(
    text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ExperimentError, match=words):
        load_catalog([path])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        load_catalog([tmp_path / "none.yaml"])


def test_every_name_that_an_entry_uses_is_known() -> None:
    catalog = load_catalog()
    for node in catalog.nodes:
        catalog.gpu(node.gpu)
        for network in node.networks:
            catalog.network(network)
    for figure in catalog.busbw:
        catalog.gpu(figure.gpu)
    for price in catalog.prices:
        assert (price.node is None) != (price.gpu is None)
