"""Proves that two cases are told apart at every size, in one sentence."""

from broadgauge.report.words.sizes import by_size_words
from broadgauge.results.model import SizeRatio


def rows(*ratios: float, op: str = "all_reduce", engine: str = "torch") -> list[SizeRatio]:
    return [
        SizeRatio(
            engine=engine, op=op, dtype="float32", size_bytes=2 ** (20 + i), busbw_ratio=ratio
        )
        for i, ratio in enumerate(ratios)
    ]


def words(found: list[SizeRatio]) -> str:
    return by_size_words(found, lambda ratio: f"{ratio:g}x")


def test_neighbours_that_did_the_same_are_one_span() -> None:
    assert words(rows(0.99, 1.02, 0.8, 0.6, 1.3, 1.0)) == (
        "by size: 1 MiB to 2 MiB alike (within 5 %), 4 MiB to 8 MiB 0.8x up to 0.6x, 16 MiB 1.3x, "
        "32 MiB alike (within 5 %)"
    )


def test_collectives_are_named_where_there_are_several() -> None:
    found = [*rows(1.0, 1.0), *rows(0.5, 0.5, op="all_gather")]
    assert words(found) == (
        "by size: all_reduce float32 1 MiB to 2 MiB alike (within 5 %), "
        "all_gather float32 1 MiB to 2 MiB 0.5x"
    )


def test_engines_are_named_where_there_are_several() -> None:
    found = [*rows(1.0, 1.0), *rows(0.5, 0.5, engine="nccl-tests")]
    assert words(found) == (
        "by size: torch all_reduce float32 1 MiB to 2 MiB alike (within 5 %), "
        "nccl-tests all_reduce float32 1 MiB to 2 MiB 0.5x"
    )


def test_without_sizes_nothing_is_said() -> None:
    assert words([]) == ""
