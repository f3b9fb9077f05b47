"""A ring waits for its slowest link: by how much, from pairs that somebody measured."""

from dataclasses import replace
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest
from tests.predict.making_tables import table_of

from broadgauge.predict.case import Fabric, Transport
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.link_rates import LINK_LOG_SD, slowest_link_ratio
from broadgauge.predict.facts.columns import columns_of

PAIRS_GBPS = (
    *(8.80, 7.81, 13.1, 7.55, 7.32, 7.64, 7.39, 8.08, 10.9, 9.79, 5.47, 4.96, 8.08, 7.72),
    *(7.55, 9.93, 8.37, 8.91, 10.7, 5.84, 5.61, 9.52, 6.56, 7.09, 10.5, 8.80, 7.02, 9.39),
    *(7.81, 7.81, 9.79, 8.18, 9.52, 9.03, 9.65, 4.88, 7.99, 7.39, 6.56, 6.88),
)
"""foundation-model-stack/multi-nic-cni, connection-check/README.md, expected output."""


def ratios(transport: Transport) -> list[float]:
    case = table_of({}).rows[0].case
    cases = [
        replace(case, nodes=nodes, data_parallel=8 * nodes, fabric=Fabric(transport=transport))
        for nodes in (2, 4, 8, 32)
    ]
    columns = columns_of(cases)
    return [float(each) for each in slowest_link_ratio(group_of("data", columns), columns)]


def test_the_spread_is_that_of_the_published_pairs() -> None:
    assert stdev(np.log(PAIRS_GBPS)) == pytest.approx(LINK_LOG_SD, abs=5e-4)


def test_it_is_what_drawing_so_many_links_gives() -> None:
    draw = NormalDist(0, LINK_LOG_SD).samples(200_000, seed=7)
    slowest = {n: mean(map(min, zip(*[iter(draw)] * n, strict=False))) for n in (2, 4, 8, 32)}
    expected = [float(np.exp(slowest[n] - slowest[2])) for n in (2, 4, 8, 32)]
    assert ratios("overlay") == pytest.approx(expected, abs=0.01)


def test_links_that_the_wire_limits_are_alike() -> None:
    for transport in ("infiniband", "roce", "tcp"):
        assert ratios(transport) == [1.0] * 4
