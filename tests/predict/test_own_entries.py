"""What a user's own catalog says is what predictions use."""

from pathlib import Path

import pytest
from tests.predict.making_cases import case

from broadgauge.catalog.catalog import Catalog, load_catalog, shipped_catalog
from broadgauge.predict.columns import columns_of
from broadgauge.predict.from_catalog import fabric_named
from broadgauge.predict.groups import group_of
from broadgauge.predict.link_rates import hop_s, node_rate, prior_spread_ratio
from broadgauge.predict.predictor import predict

NETWORKS = """
networks:
  - {name: narrow, transport: virtio, nominal_gbps: 100, source: us, date: 2026-01,
     typical_gbyte_per_s: {value: 2.1, low: 2.0, high: 2.2}}
  - {name: wide, transport: virtio, nominal_gbps: 100, nics: 2, source: us, date: 2026-01,
     typical_gbyte_per_s: {value: 4.5, low: 2.0, high: 5.0},
     latency_s: {value: 0.001, low: 0.001, high: 0.002}}
  - {name: ratio, transport: roce, nominal_gbps: 80, source: us, date: 2026-01,
     typical_ratio: {value: 0.3, low: 0.2, high: 0.8}}
  - {name: ring, transport: tcp, nominal_gbps: 100, source: us, date: 2026-01,
     ring_gbyte_per_s: {value: 2.5, low: 2.0, high: 4.5}}
  - {name: silent, transport: virtio, nominal_gbps: 100, source: us, date: 2026-01}
"""


def catalog_of(text: str, folder: Path) -> Catalog:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_catalog([path])


@pytest.mark.parametrize(
    ("name", "whole_gbyte_per_s", "by_rank_gbyte_per_s", "spread_ratio"),
    [
        ("narrow", 2.1, 2.1, 1.049),
        ("wide", 9.0, 9.0, 2.236),  # two NICs, of which the hypervisor may let one work
        ("ratio", 3.0, 3.0, 2.0),
        ("ring", 2.5, 10.0, 1.5),  # eight communicators fill the NIC to 0.8 of nominal
    ],
)
def test_a_networks_own_rate_is_used_with_its_range(
    tmp_path: Path,
    name: str,
    whole_gbyte_per_s: float,
    by_rank_gbyte_per_s: float,
    spread_ratio: float,
) -> None:
    fabric = fabric_named(name, catalog_of(NETWORKS, tmp_path))
    columns = columns_of([case(fabric=fabric, strategy="hsdp")])
    one, each = group_of("data", columns), group_of("replica", columns)
    assert node_rate(one, columns)[0] == pytest.approx(whole_gbyte_per_s * 1e9)
    assert node_rate(each, columns)[0] == pytest.approx(by_rank_gbyte_per_s * 1e9)
    assert prior_spread_ratio(columns)[0] == pytest.approx(spread_ratio, rel=1e-3)


def test_a_networks_own_latency_is_used(tmp_path: Path) -> None:
    known = catalog_of(NETWORKS, tmp_path)
    fabrics = [fabric_named(name, known) for name in ("wide", "narrow")]
    told_s, usual_s = hop_s(columns_of([case(fabric=fabric) for fabric in fabrics]))
    assert told_s == 0.001
    assert usual_s == 70e-6


def test_a_narrow_range_gives_a_narrow_interval(tmp_path: Path) -> None:
    known = catalog_of(NETWORKS, tmp_path)
    fabrics = [fabric_named(name, known) for name in ("narrow", "silent")]
    told, guessed = (
        each.step_time_s for each in predict([case(fabric=fabric) for fabric in fabrics])
    )
    assert told.value < guessed.value
    assert told.high / told.low < guessed.high / guessed.low / 2


def test_fitted_rdma_is_for_entries_that_state_nothing(tmp_path: Path) -> None:
    fabric = fabric_named("ratio", catalog_of(NETWORKS, tmp_path))
    measured = fabric_named("ratio=3GB/s", catalog_of(NETWORKS, tmp_path))
    told, same = predict([case(fabric=fabric), case(fabric=measured)])
    assert told.step_time_s.value == pytest.approx(same.step_time_s.value)


def test_shipped_networks_are_priced_as_their_transport_or_as_they_say() -> None:
    """Whatever networks.yaml will say of one: no figure of it is lost on the way."""
    known = shipped_catalog()
    for network in known.networks:
        fabric = fabric_named(network.name, known)
        prior = next(each for each in known.transports if each.name == network.transport)
        says = (network.typical_ratio, network.typical_gbyte_per_s)
        is_prior = says == (prior.typical_ratio, prior.typical_gbyte_per_s)
        assert (fabric.stated_node_gbyte_per_s is None) == is_prior, network.name
        hop = hop_s(columns_of([case(fabric=fabric)]))[0]
        assert hop == network.latency_s.value, network.name
