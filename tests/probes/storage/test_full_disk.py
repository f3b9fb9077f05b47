"""Is a disk that fills up, or that nobody may write to, told as that? Is nothing of ours left?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.namespaces
@pytest.mark.parametrize("kind", ["torch", "distributed"])
def test_a_disk_that_fills_up_while_a_checkpoint_is_saved(
    tmp_path: Path, repository: Path, kind: str
) -> None:
    program = [sys.executable, "-m", "tests.probes.storage.full_disk", str(tmp_path), kind]
    done = subprocess.run(
        ["unshare", "-rm", *program], capture_output=True, text=True, cwd=repository, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (full, full_words), (read_only, read_only_words) = told["said"]
    assert (full, read_only) == ("no_space", "refused")
    assert "No space left on device" in full_words
    assert "nothing can be written" in read_only_words
    assert "Read-only file system" in read_only_words
    assert told["left"] == ["theirs"]
