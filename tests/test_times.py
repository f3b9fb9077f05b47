"""Proves tests/times.py: where the time of a session went."""

from tests.times import TestTime, ledger


def test_the_ledger_is_by_room_and_names_the_tests_that_took_longest() -> None:
    times = {
        f"tests/cli/test_a.py::test_{number}": TestTime(
            wall_s=number, core_s=2.0 * number, ended_unix_s=0.0
        )
        for number in range(13)
    }
    times["tests/platforms/hosts/test_b.py::test_b[x/y]"] = TestTime(
        wall_s=600.0, core_s=240.0, ended_unix_s=0.0
    )
    times["tests/test_c.py::test_c"] = TestTime(wall_s=1.0, core_s=0.5, ended_unix_s=0.0)
    head, *rooms = [line.split() for line in ledger(times)]
    assert head == ["room", "tests", "wall", "core", "time"]
    assert rooms[0] == ["platforms", "1", "10.0", "min", "4.0", "min"]
    assert rooms[1] == ["cli", "13", "1.3", "min", "2.6", "min"]
    assert rooms[2][:2] == ["tests", "1"]
    slowest = [words[-1] for words in rooms[4:]]
    assert len(slowest) == 10
    assert slowest[0] == "tests/platforms/hosts/test_b.py::test_b[x/y]"
    assert slowest[1] == "tests/cli/test_a.py::test_12"
