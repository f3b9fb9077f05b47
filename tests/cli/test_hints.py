"""Holds that a hint names only flags that exist."""

import re

from broadgauge.cli.main import make_parser
from broadgauge.results.disk import _HINTS


def test_the_disks_hints_name_flags_of_run() -> None:
    (choices,) = [a.choices for a in make_parser()._actions if isinstance(a.choices, dict)]
    known = set(re.findall(r"--[a-z-]+", choices["run"].format_help()))
    named = set(re.findall(r"--[a-z-]+", " ".join(_HINTS.values())))
    assert named == {"--runs-folder", "--resume"}
    assert named <= known
