"""A clone of this checkout in which mistakes may be made, and commands run with them.

However its `with` ends, the clone is gone afterwards, and so is all that was started in it.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.emulated.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from broadgauge.agent.supervisor.descendants import kill_descendants

CHECKOUT = Path(__file__).resolve().parents[1]
TIDY_UP_S = 15.0
"""For pytest to end its fixtures, once it was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command, after all that it started."""

    exit_code: int
    output: str
    seconds: float


class ScratchClone:
    """Of HEAD, with an environment whose packages are this one's, but for the clone's own code."""

    def __init__(self, scratch: Path) -> None:
        self.path = scratch / "clone"
        self._output = scratch / "output"
        subprocess.run(["git", "clone", "--quiet", CHECKOUT, self.path], check=True)
        self._make_environment(self.path / ".venv")
        self._check_whose_code_runs()

    def _make_environment(self, folder: Path) -> None:
        """Commands, too: they begin with the interpreter that they are for."""
        venv.create(folder, symlinks=True)
        (inside,) = folder.glob("lib/python*/site-packages")
        packages = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
        # Lines of a .pth are folders: an editable install's own .pth among them is not read.
        (inside / "scratch.pth").write_text("\n".join([str(self.path / "src"), *packages]) + "\n")
        for command in Path(sysconfig.get_path("scripts")).iterdir():
            copy = self.program(command.name)
            if command.is_file() and not command.is_symlink() and not copy.exists():
                begin, newline, rest = command.read_bytes().partition(b"\n")
                if begin.startswith(b"#!") and b"python" in begin:
                    copy.write_bytes(b"#!%s" % bytes(self.program("python")) + newline + rest)
                    copy.chmod(0o755)

    def program(self, name: str) -> Path:
        """Of its environment."""
        return self.path / ".venv/bin" / name

    @property
    def environment(self) -> dict[str, str]:
        """As in CI, where a skip is a failure; no other code of ours is on any path."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        path = os.pathsep.join([str(self.program("python").parent), kept.get("PATH", os.defpath)])
        return kept | {"CI": "true", "PATH": path, "PYTHONDONTWRITEBYTECODE": ""}

    def _check_whose_code_runs(self) -> None:
        show = "import broadgauge; print(broadgauge.__file__)"
        shown = subprocess.run(
            [self.program("python"), "-c", show],
            cwd="/",
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        place = Path(shown.stdout.strip())
        assert place.is_relative_to(self.path), f"{place} is not below {self.path}"

    @contextmanager
    def with_patch(self, patch: Path) -> Iterator[None]:
        """It is applied meanwhile."""
        self._git("apply", "--whitespace=nowarn", str(patch))
        changed = self._git("diff", "--name-only").split()
        self._forget_compiled(changed)
        yield
        self._git("reset", "--quiet", "--hard")
        self._forget_compiled(changed)

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.path, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    def _forget_compiled(self, changed: Sequence[str]) -> None:
        """Python compares sizes and whole seconds: a change may escape it."""
        for name in changed:
            if name.endswith(".py"):
                compiled = importlib.util.cache_from_source(str(self.path / name))
                Path(compiled).unlink(missing_ok=True)

    def run(self, program: str, *words: str) -> Ended:
        """Runs one of its environment's.

        The output is a file: whatever is left behind would keep a pipe from ending. Ctrl-C reaches
        us alone, and we hand it on once.
        """
        begin_s = time.monotonic()
        with self._output.open("w+b") as output:
            process = subprocess.Popen(
                [self.program(program), *words],
                cwd=self.path,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait()
            except BaseException:
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TIDY_UP_S)
                raise
            finally:
                kill_descendants()
            output.seek(0)
            said = output.read().decode(errors="replace")
        return Ended(exit_code=process.returncode, output=said, seconds=time.monotonic() - begin_s)


@contextmanager
def scratch_clone() -> Iterator[ScratchClone]:
    """Orphans of what runs in it are this process's to end, so it starts nothing else meanwhile."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="scratch-clone-", ignore_cleanup_errors=True) as folder:
        try:
            yield ScratchClone(Path(folder))
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            if not kill_descendants():
                print("what was started could not be ended", file=sys.stderr)
