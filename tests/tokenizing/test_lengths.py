"""Are percentiles and bins those of all samples, counted or read back?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokenizing.made_records import lines

from broadgauge.messages.prepared_set import PreparedSetError
from broadgauge.tokenizing.lengths import counts_of, histogram, percentile
from broadgauge.tokenizing.preparing import prepare


@given(st.dictionaries(st.integers(2, 90), st.integers(1, 9), min_size=1))
def test_percentiles_and_bins_are_of_all_samples(counts: dict[int, int]) -> None:
    lengths = sorted(length for length, times in counts.items() for _ in range(times))
    assert percentile(counts, 0.5) == lengths[(len(lengths) - 1) // 2]
    above = sum(length > percentile(counts, 0.95) for length in lengths)
    assert above <= 0.05 * len(lengths)
    bins = histogram(counts)
    assert len(bins) <= 12
    for each in bins:
        inside = [length for length in lengths if each.shortest <= length <= each.longest]
        assert each.num_samples == len(inside)
    assert sum(each.num_samples for each in bins) == len(lengths)


def test_lengths_are_read_back_from_the_folder(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", *({"text": "a" * n} for n in (3, 5, 3, 9)))
    made = prepare(request)
    assert counts_of(made.folder, 20) == {3: 2, 5: 1, 9: 1}
    with pytest.raises(PreparedSetError, match="does not rise from 0 to the 21 tokens"):
        counts_of(made.folder, 21)
