"""Does `make clean-caches` remove our caches, and nothing beside them?"""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_only_our_caches_are_removed(tmp_path: Path) -> None:
    default, named = tmp_path / "default", tmp_path / "named"
    for folder in (default / "broadgauge/python", named / "control-plane", named / "other"):
        folder.mkdir(parents=True)
    (default / "uv").mkdir()
    subprocess.run(
        ["make", "clean-caches"],
        cwd=ROOT,
        check=True,
        env=os.environ | {"XDG_CACHE_HOME": str(default), "BROADGAUGE_CACHE": str(named)},
    )
    assert [each.name for each in default.iterdir()] == ["uv"]
    assert [each.name for each in named.iterdir()] == ["other"]
