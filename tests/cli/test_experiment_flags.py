"""Do all commands that take `--set` and `--on` read them alike?"""

import argparse
from typing import get_args

import pytest

from broadgauge.cli import preflight, render, run, sensitivity
from broadgauge.cli.experiment_flags import PLATFORMS, overrides
from broadgauge.specs.platforms import PlatformKind

COMMANDS = {"run": run, "preflight": preflight, "sensitivity": sensitivity, "render": render}


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    for module in COMMANDS.values():
        module.add_parser(subparsers)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_set_is_kept_in_its_order(command: str) -> None:
    options = parsed(command, "quickstart", "--set", "launches=3", "--set", "blocks=2")
    assert options.overrides == ["launches=3", "blocks=2"]


@pytest.mark.parametrize("command", ["run", "preflight", "sensitivity"])
def test_a_platform_comes_last_and_so_wins(command: str) -> None:
    options = parsed(command, "quickstart", "--on", "hosts", "--set", "platform=local")
    assert overrides(options) == ["platform=local", "platform=hosts"]
    assert overrides(parsed(command, "quickstart")) == []


def test_a_ladder_of_rates_is_not_run_on_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("sensitivity", "quickstart", "--on", "local")
    assert "local" in capsys.readouterr().err


def test_every_platform_can_be_named() -> None:
    assert set(PLATFORMS) == set(get_args(PlatformKind))
