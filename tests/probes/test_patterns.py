"""Are the buffers' values exact in every data type, and is every error found?"""

from typing import get_args

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from broadgauge.probes.collectives import patterns  # noqa: E402
from broadgauge.specs.workloads.workload import CollectiveOp  # noqa: E402

pytestmark = pytest.mark.measuring
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@given(st.integers(1, 128), st.sampled_from(tuple(TYPES)))
@settings(max_examples=60, deadline=None)
def test_sums_are_exact_and_depend_on_the_position(ranks, dtype):
    k = patterns.period("all_reduce", ranks, dtype)
    assert k is not None
    total = torch.zeros(k, dtype=TYPES[dtype])
    for rank in range(ranks):
        total += patterns.contribution(rank, ranks, k, "cpu").to(TYPES[dtype])
    assert torch.equal(total.double(), patterns.total(ranks, k, "cpu"))
    assert len(set(total.tolist())) > 1


def test_where_no_sum_is_exact_nothing_is_claimed():
    assert patterns.period("reduce", 300, "bfloat16") is None
    assert patterns.period("reduce", 300, "float32") == 251


@pytest.mark.parametrize("op", ["all_gather", "all_to_all", "broadcast", "send_recv"])
def test_what_is_only_moved_is_exact_for_any_number_of_ranks(op):
    k = patterns.period(op, 300, "bfloat16")
    assert k == 251
    values = torch.arange(k)
    assert torch.equal(values.to(torch.bfloat16).long(), values)


@given(st.sampled_from(get_args(CollectiveOp)), st.integers(2, 6), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_expected_results_are_those_of_the_operations_played_by_hand(op, ranks, part):
    """The slow reference: plain lists, handed around as MPI's standard defines each operation."""
    k = patterns.period(op, ranks, "bfloat16")
    parts = [range(r * part, (r + 1) * part) for r in range(ranks)]
    shifts = [*range(ranks - 1), ranks]
    gives = [[(i + shift) % k for i in range(ranks * part)] for shift in shifts]
    sums = [sum(column) for column in zip(*gives, strict=True)]
    for rank in range(ranks):
        own = parts[rank]
        right = {
            "all_reduce": sums,
            "all_gather": [gives[r][i] for r in range(ranks) for i in parts[r]],
            "reduce_scatter": [sums[i] for i in own],
            "all_to_all": [gives[r][i] for r in range(ranks) for i in own],
            "broadcast": gives[0],
            "reduce": sums if rank == 0 else [],
            "send_recv": gives[rank - 1],
        }[op]
        pieces = patterns.expected(op, rank, ranks, elements=ranks * part, k=k, device="cpu")
        assert sum(piece.elements for piece in pieces) == len(right)
        result = torch.tensor(right, dtype=torch.bfloat16)
        assert patterns.first_wrong(result, pieces) is None
        if right:
            result[-1] += 1
            assert patterns.first_wrong(result, pieces) == len(right) - 1


@pytest.mark.parametrize("position", [0, 1, 250, 251, 9_999])
def test_one_wrong_element_is_found(position):
    table = patterns.total(2, 129, "cpu")
    buffer = torch.empty(10_000)
    patterns.fill(buffer, table, 77)
    assert patterns.first_difference(buffer, table, 77) is None
    buffer[position] += 1
    assert patterns.first_difference(buffer, table, 77) == position


def test_chunks_join_without_a_seam(monkeypatch):
    monkeypatch.setattr(patterns, "CHUNK_ELEMENTS", 100)
    table = patterns.contribution(3, 9, 31, "cpu")
    buffer = torch.empty(1_234)
    patterns.fill(buffer, table, 5)
    assert buffer.tolist() == [float((i + 5 + 3) % 31) for i in range(1_234)]
    assert patterns.first_difference(buffer, table, 5) is None


@pytest.mark.parametrize("power", range(10))
def test_a_chunk_from_the_wrong_place_is_found(power):
    k = patterns.period("all_reduce", 2, "bfloat16")
    assert k is not None
    table = patterns.total(2, k, "cpu")
    buffer = torch.empty(2_048)
    patterns.fill(buffer, table, 2**power)
    assert patterns.first_difference(buffer, table, 0) is not None
