"""Are algbw, busbw and the ring's bytes those of nccl-tests?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.probes.collectives.definitions import (
    algbw_gbyte_per_s,
    bus_factor,
    busbw_gbyte_per_s,
    even_size_bytes,
    ring_node_bytes,
)

OPS = st.sampled_from(("all_reduce", "all_gather", "reduce_scatter"))
RANKS = st.integers(1, 1000)


@pytest.mark.parametrize(
    ("op", "ranks", "factor"),
    [
        # nccl-tests doc/PERFORMANCE.md: all_reduce 2(n-1)/n, all_gather and reduce_scatter (n-1)/n
        ("all_reduce", 8, 1.75),
        ("all_reduce", 2, 1.0),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_reduce", 1, 0.0),
    ],
)
def test_bus_factor_is_that_of_nccl_tests(op, ranks, factor):
    assert bus_factor(op, ranks) == factor


def test_a_published_line_of_nccl_tests():
    """8 ranks, 128 MiB in 649.3 µs: algbw 206.71, busbw 361.74 GB/s by the definitions."""
    assert algbw_gbyte_per_s(134_217_728, 649.3e-6) == pytest.approx(206.71, abs=0.01)
    assert busbw_gbyte_per_s("all_reduce", 8, 134_217_728, 649.3e-6) == pytest.approx(361.74, 1e-4)


@given(OPS, RANKS, st.floats(1e-9, 1e3), st.floats(1e-3, 1e3))
def test_twice_the_bytes_in_twice_the_time_is_the_same_rate(op, ranks, time_s, scale):
    one = busbw_gbyte_per_s(op, ranks, 1e6, time_s)
    assert busbw_gbyte_per_s(op, ranks, 1e6 * scale, time_s * scale) == pytest.approx(one)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(2, 1), (2, 4), (3, 2), (5, 1)])
def test_ring_bytes_are_those_of_a_ring_played_step_by_step(op, nodes, ranks_per_node):
    """The slow reference: every chunk is sent from rank to rank, bytes leaving node 0 counted."""
    ranks, chunk_bytes, leaving = nodes * ranks_per_node, 1000, 0
    for _ in range((2 if op == "all_reduce" else 1) * (ranks - 1)):
        for rank in range(ranks):
            is_node_0 = rank // ranks_per_node == 0
            stays = ((rank + 1) % ranks) // ranks_per_node == rank // ranks_per_node
            leaving += chunk_bytes if is_node_0 and not stays else 0
    assert ring_node_bytes(op, ranks, ranks * chunk_bytes) == pytest.approx(leaving)


@given(OPS, RANKS, st.integers(1, 2**34), st.sampled_from((2, 4)))
def test_measured_sizes_are_whole_and_even(op, ranks, wanted, type_bytes):
    size = even_size_bytes(op, ranks, wanted, type_bytes)
    grain = type_bytes * (1 if op == "all_reduce" else ranks)
    assert size > 0
    assert size % grain == 0
    assert size <= max(wanted, grain)
    assert wanted - size < grain
