"""Are algbw, busbw and sizes those of nccl-tests?"""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.catalog.busbw import bus_factor
from broadgauge.merging.definitions import algbw_gbyte_per_s, busbw_gbyte_per_s
from broadgauge.probes.collectives.sizes import even_size_bytes
from broadgauge.specs.workloads.workload import CollectiveOp

OPS = st.sampled_from(get_args(CollectiveOp))
RANKS = st.integers(1, 1000)


@pytest.mark.parametrize(
    ("op", "ranks", "factor"),
    [
        # nccl-tests doc/PERFORMANCE.md: all_reduce 2(n-1)/n, all_gather and reduce_scatter (n-1)/n,
        # broadcast and reduce 1; src/alltoall.cu (n-1)/n, src/sendrecv.cu 1
        ("all_reduce", 8, 1.75),
        ("all_reduce", 2, 1.0),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_reduce", 1, 0.0),
        ("all_to_all", 4, 0.75),
        ("broadcast", 4, 1.0),
        ("reduce", 4, 1.0),
        ("send_recv", 4, 1.0),
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


@given(OPS, RANKS, st.integers(1, 2**34), st.sampled_from((2, 4)))
def test_measured_sizes_are_whole_and_even(op, ranks, wanted, type_bytes):
    size = even_size_bytes(op, ranks, wanted, type_bytes)
    is_in_parts = op in ("all_gather", "reduce_scatter", "all_to_all")
    grain = type_bytes * (ranks if is_in_parts else 1)
    assert size > 0
    assert size % grain == 0
    assert size <= max(wanted, grain)
    assert wanted - size < grain
