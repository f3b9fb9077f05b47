"""What are this pod's interfaces, adapters and attachments, and what is its network among them?

`kubectl exec POD -- python3 /broadgauge/program/broadgauge.zip networks`. The network is the one
that the pod's entrypoint, its first process, was told; `--network JSON` is another.
"""

import argparse
import os
import sys
from pathlib import Path

from broadgauge.agent.pod.facts import ANNOTATIONS_FILE, read_pod_facts
from broadgauge.agent.pod.network_words import describe, describe_pod, refused
from broadgauge.agent.pod.resolve import resolve
from broadgauge.messages.asked_network import read_network_word

REFUSED = 1
WRONG_START = 2
FIRST_PROCESS = "proc/1/cmdline"


def parser() -> argparse.ArgumentParser:
    """Of this verb."""
    found = argparse.ArgumentParser(prog="broadgauge.zip networks", allow_abbrev=False)
    found.add_argument("--network", metavar="JSON", help="in the place of the entrypoint's")
    add_tree_options(found)
    return found


def add_tree_options(found: argparse.ArgumentParser) -> None:
    """Where the pod's files are."""
    found.add_argument("--root", type=Path, default=Path("/"), help="above /sys, /proc and /dev")
    found.add_argument(
        "--annotations",
        default=ANNOTATIONS_FILE,
        metavar="FILE",
        help="the pod's annotations, by the downward API, below that root",
    )


def told_to_first(command: bytes) -> "str | None":
    """Of the entrypoint's words; None: it is no entrypoint of ours, or was told no network."""
    words = command.decode(errors="replace").split("\0")
    before = words[: words.index("--")] if "--" in words else words
    if "pod" not in before or "--network" not in before[:-1]:
        return None
    return before[before.index("--network") + 1]


def main() -> int:
    """1: the network is refused; 2: what was asked can't be read."""
    options = parser().parse_args()
    facts = read_pod_facts(options.root, os.environ, options.annotations)
    lines = list(describe_pod(facts))
    word, status = options.network or _first_process(options.root), 0
    if word is not None:
        try:
            found = resolve(read_network_word(word), facts)
        except ValueError as error:
            sys.stderr.write(f"--network: {error}\n")
            return WRONG_START
        problems = list(refused(found))
        lines += [*describe(found, facts), *problems]
        status = REFUSED if problems else 0
    text = "".join(f"{line}\n" for line in lines)
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return status


def _first_process(root: Path) -> "str | None":
    try:
        return told_to_first((root / FIRST_PROCESS).read_bytes())
    except OSError:
        return None
