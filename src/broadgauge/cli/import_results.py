"""`broadgauge import`: what other programs measured, as a run like any other."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from broadgauge.cli.collector import no_collections
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.results.run_path import RUNS_FOLDER

if TYPE_CHECKING:
    from broadgauge.importing.judging import MachineGiven
    from broadgauge.importing.run import FinishedImport

_PROGRAMS = ("nccl-tests", "iperf3", "fio", "nccl-inspector")
_PATHS = ("nvlink", "pcie", "shm", "sockets")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "import",
        help="read what nccl-tests, iperf3, fio or NCCL Inspector measured",
        description="Makes a run of what other programs have measured: nccl-tests' text and JSON, "
        "iperf3's and fio's JSON, NCCL Inspector's lines. Files with the same settings are "
        "launches of one case. `show`, `report`, `compare` and `export` work on it as on any run.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        metavar="[LABEL=]FILE",
        nargs="+",
        help="a file (compressed too), a folder of logs, or - for stdin; LABEL stands in tables "
        "in the place of the network's name",
    )
    parser.add_argument(
        "--as",
        dest="program",
        choices=_PROGRAMS,
        help="who wrote the files (default: told from what is in them)",
    )
    parser.add_argument("--name", help="name of the run (default: imported)")
    parser.add_argument(
        "--op", choices=get_args(CollectiveOp), help="which collective, where the file lacks it"
    )
    parser.add_argument("--nodes", metavar="N", help="number of nodes, where the file lacks it")
    parser.add_argument("--ranks", metavar="N", help="ranks of all nodes, where the file lacks it")
    parser.add_argument("--gpu", metavar="NAME", help="GPU, where the file lacks it: h100-sxm")
    parser.add_argument("--path", choices=_PATHS, help="between the GPUs of one node")
    parser.add_argument(
        "--network", metavar="NAME", help="between the nodes, as the catalog has it: roce-400g*8"
    )
    parser.add_argument("--nic-rate", metavar="RATE", help="line rate of one NIC: '100 Gbit/s'")
    parser.add_argument(
        "--runs-folder", type=Path, default=Path(RUNS_FOLDER), metavar="DIR", help="default: runs"
    )
    parser.set_defaults(handler=handle)


@no_collections()
def handle(options: argparse.Namespace) -> int:
    from broadgauge.importing.measured import ShapeGiven
    from broadgauge.importing.run import ImportRequest, import_files
    from broadgauge.specs.records.imported import IMPORTED

    request = ImportRequest(
        files=tuple(options.files),
        program=options.program,
        name=IMPORTED if options.name is None else options.name,
        shape=ShapeGiven(
            op=options.op,
            nodes=_count("--nodes", options.nodes),
            ranks=_count("--ranks", options.ranks),
        ),
        machine=_machine(options),
        runs_folder=options.runs_folder,
    )
    finished = import_files(request)
    _show(finished)
    return finished.exit_code


def _count(flag: str, text: str | None) -> int | None:
    from broadgauge.specs.errors import InputError

    if text is None:
        return None
    if not text.isdecimal() or not 1 <= len(text) <= 6 or int(text) < 1:
        raise InputError(f"{flag} {text}: not a number of them", hint=f"{flag} 2")
    return int(text)


def _machine(options: argparse.Namespace) -> "MachineGiven":
    """Raises InputError for what the catalog does not know."""
    from broadgauge.catalog.gpus import find_gpu_named
    from broadgauge.catalog.networks import find_network
    from broadgauge.importing.judging import MachineGiven

    return MachineGiven(
        gpu=None if options.gpu is None else find_gpu_named(options.gpu).name,
        path=options.path,
        network=None if options.network is None else find_network(options.network),
        nic_gbps=_rate_gbps(options.nic_rate),
    )


def _rate_gbps(text: str | None) -> float | None:
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_rate_gbps

    if text is None:
        return None
    try:
        gbps = parse_rate_gbps(text)
    except ValueError as error:
        raise InputError(f"--nic-rate {text}: {error}", hint="--nic-rate '100 Gbit/s'") from None
    if not isinstance(gbps, float) or not 0 < gbps <= 10_000:
        raise InputError(f"--nic-rate {text}: no line rate", hint="--nic-rate '100 Gbit/s'")
    return gbps


def _show(finished: "FinishedImport") -> None:
    from broadgauge.analysis.store import read_analysed
    from broadgauge.cli.console import results_console
    from broadgauge.cli.output import details_command, say
    from broadgauge.report.terminal.printing import print_closing_table

    for note in finished.notes:
        say(f"note       {note}")
    with results_console() as console:
        details = details_command(finished.location)
        print_closing_table(read_analysed(finished.folder), console, details=details)
    num = len(finished.records)
    say(f"imported   {num} measurement{'s' * (num != 1)}: {finished.location}")
