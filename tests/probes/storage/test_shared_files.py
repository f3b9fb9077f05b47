"""Is what one rank reads and another finds in memory counted as what it is?"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Told = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Told:
    """What each rank says, by the name of what was asked."""
    folder = tmp_path_factory.mktemp("shared")
    program = [sys.executable, "-m", "tests.probes.storage.two_ranks"]
    ranks = [
        subprocess.Popen(
            [*program, str(rank), str(folder)], cwd=repository, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    first, second = (json.loads(rank.communicate()[0]) for rank in ranks)
    return first, second


def test_ranks_that_share_a_page_cache_are_counted_together(told: Told) -> None:
    both = {"size_bytes": 1000, "device_bytes": 1000, "cached_before_bytes": 0, "whole_bytes": 1000}
    assert [rank["together"] for rank in told] == [both, both]


def test_ranks_with_files_of_their_own_are_counted_alone(told: Told) -> None:
    """And against what they need of them."""
    assert [rank["apart"]["device_bytes"] for rank in told] == [400, 600]
    assert [rank["apart"]["size_bytes"] for rank in told] == [600, 600]


def test_another_machine_has_a_page_cache_of_its_own(told: Told) -> None:
    assert [rank["on_other_machines"]["device_bytes"] for rank in told] == [900, 901]


def test_rank_0_writes_where_all_see_it(told: Told) -> None:
    for rank in told:
        assert (rank["of_all"]["writer"], rank["of_all"]["is_for_all"]) == (0, True)
        assert rank["of_all"]["path"].endswith("all/rank0")


def test_else_the_first_rank_of_each_node_does(told: Told) -> None:
    for number, rank in enumerate(told):
        found = rank["of_each_node"]
        assert (found["writer"], found["is_for_all"]) == (number, False)
        assert found["path"].endswith(f"node{number}/rank{number}")
