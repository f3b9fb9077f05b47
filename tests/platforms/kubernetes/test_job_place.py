"""How are a run's objects named?"""

import re

from hypothesis import given
from hypothesis import strategies as st

from broadgauge.platforms.kubernetes.job_place import run_label


@given(name=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True), folder=st.text())
def test_a_runs_name_is_a_label_with_room_for_what_operators_add(name: str, folder: str) -> None:
    label = run_label(name, folder)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", label)
    assert len(label) <= 31
    assert label == run_label(name, folder)


def test_two_folders_of_an_experiment_are_two_runs() -> None:
    assert run_label("x", "/a/logs") != run_label("x", "/b/logs")
