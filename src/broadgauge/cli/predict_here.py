"""`predict EXPERIMENT --system FILE`: the file's trainings on the machine that was calibrated."""

import argparse


def is_here(options: argparse.Namespace) -> bool:
    """Is it that machine that is meant? Yes, unless a flag names another cluster."""
    others = ("gpu", "node", "nodes", "gpus_per_node", "network")
    return (
        options.experiment is not None
        and options.system is not None
        and all(getattr(options, f"property_{name}") is None for name in others)
    )


def handle(options: argparse.Namespace) -> int:
    """Raises InputError."""
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import write
    from broadgauge.cli.predict_flags import FLAGS
    from broadgauge.predict.system.experiment_here import steps_here
    from broadgauge.predict.system.file import read_system
    from broadgauge.report.predict.here import here_json, print_here
    from broadgauge.running.experiments import load
    from broadgauge.specs.errors import InputError

    others = {f"property_{each.field}": each.name for each in FLAGS}
    others |= {name: f"--{name}" for name in ("csv", "html", "trace", "explain", "measured")}
    others |= {"catalog": "--catalog", "usd_per_gpu_hour": "--usd-per-gpu-hour"}
    others |= {"tokens": "--tokens"}
    for name, flag in others.items():
        if getattr(options, name) not in (None, False, []):
            raise InputError(
                f"{flag} does not go with an experiment on its own system file",
                hint="name a cluster: --gpu h100-sxm --network roce-400g",
            )
    system = read_system(options.system)
    steps, left_out = steps_here(load(options.experiment, ()).experiment, system)
    notes = [f"{number} × left out: {why}" for why, number in left_out]
    if options.json:
        write(here_json(steps, system, notes))
        return 0
    with results_console() as console:
        print_here(steps, system, notes, console)
    return 0
