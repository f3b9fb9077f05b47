"""What every test shares: a test that can't run says why, and in CI it may not."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.disturbance import BUDGET_S, Repeating

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


# A shell starts background jobs with SIGINT ignored, nohup with SIGHUP ignored, and both are handed
# on to every process: the tests of signals need them as in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def refusal_of_namespaces() -> str | None:
    """Why emulated nodes can't be made here, None where they can."""
    if not sys.platform.startswith("linux"):
        return "not Linux"
    from broadgauge.platforms.emulated.ability import probe_ability

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


NEEDS: dict[str, Callable[[], str | None]] = {
    "namespaces": refusal_of_namespaces,
    "measuring": missing_torch,
    "gpu": missing_gpus,
    "root": lambda: None if os.geteuid() == 0 else "not root",
    "browser": lambda: None if CHROMIUM else "no Chromium: apt install chromium",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long tests may be repeated that a busy host disturbed."""
    parser.addoption("--repeats-s", type=float, default=BUDGET_S, help="seconds for all repeats")


def pytest_configure(config: pytest.Config) -> None:
    if sys.platform.startswith("linux"):
        config.pluginmanager.register(Repeating(config.getoption("repeats_s")), "repeating")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what can't run here with the reason, except in CI, where that would hide a gap."""
    reasons: dict[str, str | None] = {}
    for item in items:
        for marker, needs in NEEDS.items():
            if item.get_closest_marker(marker) is None:
                continue
            if marker not in reasons:
                reasons[marker] = needs()
            reason = reasons[marker]
            if reason is not None and not (os.environ.get("CI") and marker != "gpu"):
                item.add_marker(pytest.mark.skip(reason=f"{marker}: {reason}"))


@pytest.fixture
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
