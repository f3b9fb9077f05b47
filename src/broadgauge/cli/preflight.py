"""`broadgauge preflight`: would an experiment's launches come up, before GPU hours are spent?"""

import argparse
from pathlib import Path
from typing import Any

from broadgauge.cli.experiment_flags import add_on_flag, add_set_flag, overrides


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "preflight",
        help="look whether an experiment's machines are fit for it",
        description="Looks in half a minute at what an experiment would run on, and runs no "
        "launch: does each machine reach every other one over each network, with full packets; is "
        "RDMA there where it is asked for; are torch, NCCL, clocks and GPUs as they should be. "
        "`run` does the same before its first launch. Exit code 0: nothing fails; 11: something "
        "does, or a machine did not answer.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        help="an experiment file, or the name of an example such as `quickstart`",
    )
    add_on_flag(parser)
    add_set_flag(parser, "--set cluster.shapes=[4x8]")
    parser.add_argument(
        "--failing-nodes",
        type=Path,
        metavar="FILE",
        help="write the nodes without which nothing would fail, one a line; `srun "
        "--exclude=./FILE` takes it; empty where nothing fails",
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import say_sentence, write_sentence
    from broadgauge.engine.ports import unobserved
    from broadgauge.platforms.led.preflight import (
        failing_names,
        is_well,
        preflight_words,
        write_failing,
    )
    from broadgauge.running.experiments import load
    from broadgauge.running.preflight import preflight
    from broadgauge.running.preparing import RunOptions, prepare
    from broadgauge.specs.errors import ExitCode

    loaded = load(options.experiment, overrides(options), None)
    prepared = prepare(loaded, RunOptions(), observer=unobserved)
    failing: list[str] = []
    is_all_well = True
    for found in preflight(prepared, say_sentence):
        for words in preflight_words(found.done):
            write_sentence(f"{found.kind}: {words.removeprefix('preflight: ')}")
        failing += failing_names(found.done)
        is_all_well &= is_well(found.done)
    if options.failing_nodes is not None:
        write_failing(failing, options.failing_nodes)
    return ExitCode.OK if is_all_well else ExitCode.PREFLIGHT_FAILS
