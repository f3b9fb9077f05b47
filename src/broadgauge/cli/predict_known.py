"""Which flags say what the user knows of the machine? A system file, and steps measured."""

import argparse
from pathlib import Path


def add_flags(group: "argparse._ArgumentGroup") -> None:
    """Declares them."""
    group.add_argument(
        "--system", type=Path, metavar="FILE", help="of `calibrate`: this GPU's measured speed"
    )
    group.add_argument(
        "--measured",
        type=Path,
        metavar="FILE.csv",
        help="steps of yours, in the columns of `validate`'s tables: they calibrate",
    )
