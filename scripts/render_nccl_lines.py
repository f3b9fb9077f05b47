"""Hold the doctor's rules against the sources of NCCL, and print their lines as a table.

    python scripts/render_nccl_lines.py CHECKOUT_OF_NCCL > tests/doctor/rules/lines/rendered.yaml

Every INFO and WARN of each release is rendered from its format string with made-up values; a line
that a rule knows is an example of that rule, marked with release and file. Wordings that no release
prints, and warnings that no rule knows, go to stderr.
"""

import itertools
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from broadgauge.doctor.log.loading import shipped_rules
from broadgauge.doctor.log.matching import Matcher

RELEASES = (
    *("v2.18.6-1", "v2.19.4-1", "v2.20.5-1", "v2.21.5-1", "v2.22.3-1", "v2.23.4-1", "v2.24.3-1"),
    *("v2.25.1-1", "v2.26.5-1", "v2.27.7-1", "v2.28.9-1", "v2.29.7-1", "v2.30.7-1"),
)
_CALL = re.compile(r"\b(INFO|WARN|GOTO_WARN)\s*\(")
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PLACE = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t)?([diouxXeEfgGcsp%])")
_WORDS = (
    *("Enabled", "Disabled", "eth0", "mlx5_0", "IB", "Socket", "", "Cannot allocate memory"),
    *("192.0.2.7<40001>", "creating", "ibv_reg_mr", "SHM", " [0]eth0:192.0.2.7<0>", "rings"),
    *(
        "not ",
        " [0]mlx5_0:1/RoCE",
        "ibv_modify_qp",
        "NET",
        "libnccl-net.so",
        " 0 1",
        " [0] 1/-1/-1->0->-1",
    ),
    *("GPU/0-7 (rank 7) - NET/0-7 (distance 7 <= 7), read 7 mode Default", " libnccl-net.so"),
    *("recv from", "send to", "CUDA driver version is insufficient for CUDA runtime version"),
)
_MACROS = ("ibv_reg_mr", "ibv_reg_mr_iova2", "ibv_create_cq", "ibv_create_qp", "ibv_modify_qp")
_FIXED = {"d": "7", "i": "7", "u": "7", "o": "7", "x": "1a", "X": "1A", "c": "c", "%": "%"}
MOST_TRIES = 400


def sources(checkout: Path, release: str) -> Iterator[tuple[str, str]]:
    """Path and text of each C++ file below src."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", release, "src"],
        cwd=checkout, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for path in listed:
        if path.endswith((".cc", ".h", ".c")):
            shown = subprocess.run(
                ["git", "show", f"{release}:{path}"], cwd=checkout, capture_output=True, check=True
            )
            yield path, shown.stdout.decode(errors="replace")


def formats(text: str) -> Iterator[tuple[str, str]]:
    """Level and format string of each call; macros in the middle of a string stand as MACRO."""
    for call in _CALL.finditer(text):
        arguments = text[call.end() : call.end() + 1500]
        first = _LITERAL.search(arguments)
        if first is None or ";" in arguments[: first.start()]:
            continue
        parts, end = [first[1]], first.end()
        while (
            following := re.match(r'\s*(?:[A-Za-z_]\w*\s*)?"((?:[^"\\]|\\.)*)"', arguments[end:])
        ) is not None:
            is_joined = re.match(r'\s*"', arguments[end:]) is not None
            parts += [following[1]] if is_joined else ["MACRO", following[1]]
            end += following.end()
        yield call[1].replace("GOTO_", ""), "".join(parts).replace('\\"', '"').split("\\n")[0]


def renderings(form: str) -> Iterator[str]:
    """With made-up values; words are tried in turn."""
    num_words = sum(match[1] == "s" for match in _PLACE.finditer(form))
    chosen = random.Random(form)  # the same words each time this program runs
    alike = ((word,) * num_words for word in _WORDS)
    mixed = (tuple(chosen.choices(_WORDS, k=num_words)) for _ in range(MOST_TRIES))
    for words in itertools.chain(alike, mixed) if num_words else [()]:
        left = iter(words)

        def value(match: re.Match[str], left: Iterator[str] = left) -> str:
            kind = match[1]
            if kind == "s":
                return next(left)
            return {"p": "0x7f0c1a"}.get(kind, _FIXED.get(kind, "1.250000"))

        yield _PLACE.sub(value, form).replace("MACRO", chosen.choice(_MACROS))


def main() -> None:
    checkout = Path(sys.argv[1])
    rules = shipped_rules()
    matcher = Matcher(rules)
    found: dict[tuple[str, str], dict[str, str]] = {}
    unknown: dict[str, str] = {}
    seen: set[str] = set()
    for release in RELEASES:
        for path, text in sources(checkout, release):
            for level, form in formats(text):
                if form in seen:
                    continue
                seen.add(form)
                place, is_known = f"{release}:{path}", False
                for line in {rendered.strip(): None for rendered in renderings(form)}:
                    match = matcher.match_nccl(line)
                    if match is not None:
                        is_known = True
                        key = (match.rule.id, match.wording.says)
                        found.setdefault(key, {"line": line, "source": place})
                if level == "WARN" and not is_known:
                    unknown.setdefault(form, place)
    print("# By scripts/render_nccl_lines.py: rendered from the sources of the releases named.")
    print("lines:")
    for rule in rules:
        for wording in rule.lines:
            entry = found.get((rule.id, wording.says))
            if entry is not None:
                source, line = json.dumps(entry["source"]), json.dumps(entry["line"])
                words = f"rule: {rule.id}, from: rendered, source: {source}, line: {line}"
                print(f"  - {{{words}}}")
            elif wording.level != "text":
                print(f"no release prints: {rule.id}: {wording.says}", file=sys.stderr)
    print(
        f"{len(found)} wordings found; {len(unknown)} warnings that no rule knows", file=sys.stderr
    )
    for form, place in unknown.items():
        print(f"unknown: {place}: {form}", file=sys.stderr)


if __name__ == "__main__":
    main()
