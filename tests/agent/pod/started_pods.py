"""A pod's first process, with a torchrun that says what it was given."""

import json
import subprocess
import sys
import threading
from pathlib import Path

from broadgauge.agent import bundle

TORCHRUN = """
import json, os, signal, sys, time
told = {"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
with open(os.environ["TOLD"], "a") as file:
    file.write(json.dumps(told) + "\\n")
if os.environ.get("HANG"):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    print("hangs", flush=True)
    time.sleep(600)
sys.exit(int(os.environ.get(f"EXIT_{os.environ['BROADGAUGE_LAUNCH']}", "0")))
"""


TWO = ("--nodes", "2", "--ranks-per-node", "4")
HANG_LIMIT_S = 240.0
"""None of these pods has anything to wait for so long."""


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code, and what is left of the log; one that hangs is ended, with what it wrote."""
    try:
        log, _ = process.communicate(timeout=HANG_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        log, _ = process.communicate()
        raise AssertionError(f"it hangs: {log}") from None
    return process.returncode, log


def read_until(process: "subprocess.Popen[str]", words: str) -> str:
    """The first line that has these words; one that hangs is ended, and then there is none."""
    assert process.stdout is not None
    limit = threading.Timer(HANG_LIMIT_S, process.kill)
    limit.start()
    try:
        seen = []
        while words not in (line := process.stdout.readline()):
            seen.append(line)
            assert line, f"it ended or hung before: {''.join(seen)}"
        return line
    finally:
        limit.cancel()


class Pod:
    """What its container has: the zip file, the user's files, and a Python with a torchrun."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "scratch" / "work"
        self._archive = folder / "broadgauge.zip"
        self._archive.write_bytes(bundle.build(bundle.POD_PARTS))
        package = folder / "site" / "torch" / "distributed"
        package.mkdir(parents=True)
        for each in (package.parent, package):
            (each / "__init__.py").touch()
        (package / "run.py").write_text(TORCHRUN)

    def start(
        self,
        *arguments: str,
        python: str = sys.executable,
        before: tuple[str, ...] = (),
        **variables: str,
    ) -> "subprocess.Popen[str]":
        """`arguments`: beside those that every pod has; `before`: of what starts it."""
        environment = {"PYTHONPATH": str(self.folder / "site"), "TOLD": str(self.folder / "told")}
        return subprocess.Popen(
            [*before, python, str(self._archive), "pod", "--leader", "127.0.0.1", "--port", "29500",
             "--folder", str(self.work), *arguments],
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip

    def run(
        self,
        *arguments: str,
        python: str = sys.executable,
        before: tuple[str, ...] = (),
        **variables: str,
    ) -> tuple[int, str]:
        """Exit code and log."""
        process = self.start(*arguments, python=python, before=before, **variables)
        return ended(process)

    @property
    def has_started(self) -> bool:
        """Was there any torchrun?"""
        return (self.folder / "told").exists()

    def environment(self) -> dict[str, str]:
        """Of the one launch."""
        (launch,) = self.told
        found = launch["environment"]
        assert isinstance(found, dict)
        return found

    @property
    def told(self) -> list[dict[str, object]]:
        """What each torchrun was given."""
        lines = (self.folder / "told").read_text().splitlines()
        return [json.loads(line) for line in lines]
