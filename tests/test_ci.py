"""Proves scripts/ci.py and scripts/watchdog.py: any failure fails the whole, what each part cost is
said, and what hangs is shown and ended."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def ci() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts/ci.py"
    sys.path.insert(0, str(path.parent))  # as `python3 scripts/ci.py` has it
    spec = importlib.util.spec_from_file_location("broadgauge_ci", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_scripts(
    ci: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **more: str
) -> tuple[int, list[str]]:
    """Exit code and output of parts that are these shell commands, each after those before it."""
    scripts = {"environment": "echo installed", **more}
    parts = [
        ci.Part(
            name=name,
            command=("sh", "-c", script),
            needs=() if name == "environment" else ("environment",),
        )
        for name, script in scripts.items()
    ]
    monkeypatch.setattr(ci, "parts", lambda: parts)
    code = ci.main()
    return code, capsys.readouterr().out.splitlines()


PASSES = "echo; echo '==== 3 passed, 1 skipped, 20 deselected in 1.50s ===='"
FAILS = "echo '== 1 failed, 2 passed, 1 warning, 1 error in 62.25s (0:01:02) =='; exit 1"


def test_all_is_well_where_each_part_is(
    ci: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = run_scripts(ci, monkeypatch, capsys, first=PASSES, second=PASSES)
    assert code == 0
    assert lines[-1] == "===== 6 passed, 2 skipped in 3.00s ====="
    assert not any("FAILED" in line for line in lines)


def test_a_failure_is_the_verdict_and_the_others_still_run(
    ci: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = run_scripts(ci, monkeypatch, capsys, lint="exit 2", first=FAILS, second=PASSES)
    assert code == 1
    assert "ci: FAILED: lint, first" in lines
    counts = "1 failed, 5 passed, 1 skipped, 1 warning, 1 error"
    assert lines[-1] == f"===== {counts} in 63.75s (0:01:03) ====="


def test_without_an_environment_nothing_else_runs(
    ci: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = run_scripts(ci, monkeypatch, capsys, environment="exit 1", first=PASSES)
    assert code == 1
    assert any(line.startswith("ci: first") and line.endswith("NOT RUN") for line in lines)
    assert lines[-1] == "===== no tests ran in 0.00s ====="


def test_core_time_is_that_of_everything_a_part_started(ci: ModuleType) -> None:
    work = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass'"
    outcomes = ci.run_parts([ci.Part(name="works", command=("sh", "-c", f"({work}); sleep 0.5"))])
    assert 0.5 <= outcomes["works"].core_s < outcomes["works"].wall_s


def test_what_others_had_of_the_cores_is_said(ci: ModuleType) -> None:
    meanwhile = ci.CoreTime(busy_s=150.0, stolen_s=20.0, all_s=200.0)
    assert ci.share_of_others(meanwhile, 100.0) == "25 % other programs, 10 % the hypervisor"
    assert ci.share_of_others(meanwhile, 160.0) == "0 % other programs, 10 % the hypervisor"
    assert ci.share_of_others(ci.CoreTime(), 100.0) == "unknown"
    assert ci.CoreTime.now().all_s >= ci.CoreTime.now().busy_s > 0.0


def test_what_is_there_is_not_installed(ci: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci.shutil, "which", lambda name: None if name == "cc" else f"/bin/{name}")
    assert ci.missing_packages() == ["gcc", "libc6-dev"]
    assert "gcc libc6-dev" in ci.install_command(["gcc", "libc6-dev"])[-1]
    assert ci.install_command([]) == ["true"]


def test_kubernetes_is_built_before_the_tests_and_not_beside_them(ci: ModuleType) -> None:
    parts = {part.name: part for part in ci.parts()}
    assert parts["control plane"].command == ("make", "control-plane")
    assert {"packages", "control plane"} <= set(parts["tests"].after)


DRIVER = """
import os, sys, time
sys.path.insert(0, {scripts!r})
import ci
class OnceBothHang(ci.Watchdog):
    def run(self):
        while not (os.path.exists("hangs") and os.path.exists("daemon")):
            time.sleep(0.01)
        super().run()
ci.Watchdog, ci.WATCHDOG_S = OnceBothHang, 0.0
python = [sys.executable, "-X", "faulthandler", "-c"]
hangs = "def hangs():\\n    import time\\n    open('hangs', 'w')\\n    time.sleep(1000)\\nhangs()"
ci.parts = lambda: [
    ci.Part(name="quick", command=["true"]),
    ci.Part(name="python hangs", command=[*python, hangs]),
    ci.Part(name="leaves a daemon", command=["sh", "-c", {daemon!r}]),
    ci.Part(name="after it", command=["echo", "never said"], after=["python hangs"]),
]
sys.exit(ci.main())
"""
DAEMON = "setsid sh -c 'echo > daemon; exec sleep 1000' &"


def test_what_hangs_is_shown_and_ended_and_what_comes_after_is_not_begun(tmp_path: Path) -> None:
    """The daemon holds its part's output open, and its parent is gone."""
    scripts = str(Path(__file__).parents[1] / "scripts")
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER.format(scripts=scripts, daemon=DAEMON)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = ran.stdout
    assert ran.returncode == 1, said
    assert re.search("what still runs is ended: .*python hangs, leaves a daemon, after it", said)
    assert re.search(r"ci: +\d+ below .* sleep 1000\n", said), said
    assert re.search(r'File "<string>", line [34] in hangs\n', said), said
    assert re.search(r"ci: after it .*NOT RUN\n", said), said
    assert "\nnever said" not in said
    assert "can not be ended" not in said


def test_the_watchdog_lets_be_what_ends_in_time(
    ci: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    waited = ci.Watchdog(list, ci.say, limit_s=0.0, grace_s=0.0)
    waited.run()
    assert not waited.has_barked
    assert capsys.readouterr().out == ""
