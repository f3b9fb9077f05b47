"""What every test shares: a test that can't run says why, and in CI it may not."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from tests.direct_folder import direct_folder
from tests.judgements import Judgements
from tests.own_machine import enter_own_machine
from tests.sharding import keep_shard, parse_shard
from tests.timeouts import EndAtTimeout
from tests.times import Timing

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


# Cores that others have are no reason to give a process up: CI's machines are busy now and then.
if os.environ.get("CI"):
    os.environ.setdefault("BROADGAUGE_LIMIT_FACTOR", "10")
# A shell starts background jobs with SIGINT ignored, nohup with SIGHUP ignored, and both are handed
# on to every process: the tests of signals need them as in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# How long an example takes says nothing of what it proves. In CI hypothesis judges none anyway.
if not os.environ.get("CI"):
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("facts", deadline=None, suppress_health_check=slow)
    hypothesis.settings.load_profile("facts")


def refusal_of_namespaces() -> str | None:
    """Why emulated nodes can't be made here, None where they can."""
    if not sys.platform.startswith("linux"):
        return "not Linux"
    from broadgauge.agent.emulated.ability import probe_ability

    return probe_ability().reason


def missing_torch() -> str | None:
    try:
        import torch
    except ImportError:
        return "torch is not installed: broadgauge[torch]"
    return None if torch.distributed.is_available() else "this torch has no torch.distributed"


def missing_gpus() -> str | None:
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except (ImportError, pynvml.NVMLError) as error:
        return f"no NVIDIA GPUs: {error}"
    return None if count >= 2 else f"{count} GPU, two are needed"


def missing_sshd() -> str | None:
    lacking = [name for name in ("ssh", "sshd", "nsenter") if shutil.which(name) is None]
    install = "apt install openssh-server openssh-client"
    return f"no {', '.join(lacking)}: {install}" if lacking else None


def missing_btrfs() -> str | None:
    if os.geteuid():
        return "not root"
    lacking = [name for name in ("btrfs", "mkfs.btrfs", "unshare") if shutil.which(name) is None]
    if lacking:
        return f"no {', '.join(lacking)}: apt install btrfs-progs"
    if "btrfs" in Path("/proc/filesystems").read_text().split():
        return None
    found = shutil.which("modprobe")
    is_there = found and not subprocess.run([found, "--quiet", "btrfs"], check=False).returncode
    return None if is_there else "this kernel has no Btrfs"


def missing_image_tools() -> str | None:
    lacking = [name for name in ("mmdebstrap", "buildah") if shutil.which(name) is None]
    return f"no {', '.join(lacking)}: apt install mmdebstrap buildah" if lacking else None


def missing_control_plane() -> str | None:
    from tests.kubernetes.cluster.programs import reason_missing

    return reason_missing()


NEEDS: dict[str, Callable[[], str | None]] = {
    "namespaces": refusal_of_namespaces,
    "measuring": missing_torch,
    "gpu": missing_gpus,
    "root": lambda: None if os.geteuid() == 0 else "not root",
    "sshd": missing_sshd,
    "btrfs": missing_btrfs,
    "images": missing_image_tools,
    "kubernetes": missing_control_plane,
    "browser": lambda: None if CHROMIUM else "no Chromium: apt install chromium",
}


ALONE = ("measured",)
"""What judges times and rates is not run beside other tests."""
LONG = ("slow", "measuring", "namespaces", "browser", "kubernetes")
"""What starts programs that take seconds. Workers take one module after the other, and one that
takes long would else be the last, with the other workers idle."""
NOT_JUDGED = "not judged: "
"""Begins the reason of a skip for want of cores to judge by: no fact may be skipped for that."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """What is run again, which part of the thorough tests is run, and what is told of them."""
    parser.addoption(
        "--repeats-s", type=float, help="repeat what judges times where cores were stolen, so long"
    )
    parser.addoption("--ledger", action="store_true", help="say where the time went")
    parser.addoption("--judgements-to", type=Path, help="write their table there as Markdown")
    parser.addoption("--shard", help="3/8: of the thorough tests only the fourth of eight parts")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timing(), "timing")
    config.pluginmanager.register(Judgements(config.getoption("judgements_to")), "judgements")
    config.pluginmanager.register(EndAtTimeout(), "end_at_timeout")
    if config.getoption("repeats_s") is not None:
        from tests.disturbance import Repeating

        config.pluginmanager.register(Repeating(config.getoption("repeats_s")), "repeating")


def is_beside_others(config: pytest.Config) -> bool:
    """Is this a process of pytest-xdist that runs tests while others do?"""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what is run alone, and skips what can't run here with the reason, except in CI, where
    that would hide a gap. Modules that take long come first."""
    reasons: dict[str, str | None] = {}
    for item in items:
        if any(map(item.get_closest_marker, ALONE)):
            item.add_marker(pytest.mark.alone)
        for marker, needs in NEEDS.items():
            if item.get_closest_marker(marker) is None:
                continue
            if marker not in reasons:
                reasons[marker] = needs()
            reason = reasons[marker]
            if reason is not None and not (is_ci() and marker != "gpu"):
                item.add_marker(pytest.mark.skip(reason=f"{marker}: {reason}"))
    if text := config.getoption("shard"):
        keep_shard(config, items, parse_shard(text))
    long = {item.path for item in items if any(map(item.get_closest_marker, LONG))}
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers share no ports, so each would start a control plane of its own: 0.8 GB and half a
    minute of core time. All of its tests are one worker's, which starts one."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.one_worker import OneWorkerForKubernetes

    return OneWorkerForKubernetes(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    if is_beside_others(session.config):
        enter_own_machine()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside others it would measure them, or they would measure it."""
    if is_beside_others(item.config) and item.get_closest_marker("alone"):
        pytest.fail("is run alone: add -m 'not alone', or leave -n out", pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything is there that a test needs, so a skip hides a gap: it is a failure."""
    report = yield
    if is_ci() and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        allowed = ("gpu: ", NOT_JUDGED) if item.get_closest_marker("measured") else ("gpu: ",)
        if not reason.removeprefix("Skipped: ").startswith(allowed):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} may not be skipped in CI: {reason}"
    return report


def is_ci() -> bool:
    return bool(os.environ.get("CI"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture
def disk(tmp_path: Path, repository: Path) -> Iterator[Path]:
    """An empty folder on a file system that takes O_DIRECT."""
    with direct_folder(tmp_path, repository) as folder:
        yield folder


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
