"""Proves tests/one_worker.py: all that need the control plane go where one of them goes."""

from tests.one_worker import OneWorkerForKubernetes


def test_one_folder_counts_as_one_file_and_others_do_not() -> None:
    scheduler = object.__new__(OneWorkerForKubernetes)
    of_plane = (
        "tests/kubernetes/test_operators.py::test_a",
        "tests/kubernetes/test_jobs.py::test_b",
    )
    others = (
        "tests/test_ci.py::test_a",
        "tests/test_ci.py::test_b",
        "tests/cli/test_ci.py::test_a",
    )
    assert len({scheduler._split_scope(name) for name in of_plane}) == 1
    assert len({scheduler._split_scope(name) for name in (*of_plane, *others)}) == 3
