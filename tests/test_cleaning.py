"""Does `make clean-caches` remove our caches, and nothing beside them?"""

import os
import subprocess
from pathlib import Path

from broadgauge.messages.prepared_set import DESCRIPTION

ROOT = Path(__file__).parent.parent
KEY = "0123456789abcdef"
"""Of a prepared set."""


def test_only_our_caches_are_removed(tmp_path: Path) -> None:
    default, named = tmp_path / "default", tmp_path / "named"
    ours = ("control-plane/etcd", "images", f"data/{KEY}", f"data/.{KEY}.part-x1")
    for folder in (*ours, "other/data", "data/of theirs"):
        (named / folder).mkdir(parents=True)
    (named / "images" / "bookworm-python3.tar").touch()
    (named / "data" / KEY / DESCRIPTION).touch()
    for folder in ("broadgauge/data", "uv"):
        (default / folder).mkdir(parents=True)
    subprocess.run(
        ["make", "clean-caches"],
        cwd=ROOT,
        check=True,
        env=os.environ | {"XDG_CACHE_HOME": str(default), "BROADGAUGE_CACHE": str(named)},
    )
    assert [each.name for each in default.iterdir()] == ["uv"]
    left = {str(each.relative_to(named)) for each in named.rglob("*")}
    assert left == {"other", "other/data", "data", "data/of theirs"}
