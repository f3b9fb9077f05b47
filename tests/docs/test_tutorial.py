"""docs/tutorial.md: its commands can be typed, name what is there, and do what the page shows."""

import ast
import csv
import itertools
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.e2e.driving import COMMAND, WITHOUT_TORCH, only_run, run_command

from broadgauge.catalog.networks import parse_network
from broadgauge.cli.main import make_parser
from broadgauge.specs.text.reading import read_experiment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.M | re.S)
"""Language and text."""
FILES = ("own_script.py", "own-script.yaml")
SHELL = ("broadgauge ", "cd ", "cp ", "mkdir ", "source ")
EXAMPLES = ROOT / "examples"
SCRIPT = (EXAMPLES / "own_script.py").read_text(encoding="utf-8")
EXPERIMENT = (EXAMPLES / "own-script.yaml").read_text(encoding="utf-8")
NETWORKS = ("one node", "slow", "fast", "reference")
COLUMNS = {"COLUMNS": "80"}
"""A terminal as wide as the page's."""
SHORT = [
    *("--set", "launches=1", "--set", "cluster.shapes=[2x1]"),
    *("--set", "networks=[{name: fast, rate_gbps: 1 Gbit/s}]"),
]
"""Of the page's four cases two, since each launch takes seconds."""
LEFT_OUT = ("one node", "slow")
FEW_STEPS = ["--set", "workloads.own-script.command=[own_script.py, --steps, '8', --width, '256']"]


def commands() -> list[list[str]]:
    """Each line of a block that is typed, without its comment."""
    typed = [text for _, text in BLOCKS if text.startswith(SHELL)]
    return [shlex.split(line, comments=True) for text in typed for line in text.splitlines()]


def asked_of_the_tool() -> list[list[str]]:
    """Each `broadgauge …` of the page, in a block or in a sentence."""
    prose = re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)
    inline = [shlex.split(text) for text in re.findall(r"`(broadgauge [^`]+)`", prose)]
    return inline + [words for words in commands() if words[0] == "broadgauge"]


def typed(*words: str) -> list[str]:
    """The arguments of the page's first command that has these words."""
    return next(line[1:] for line in commands() if set(words) <= set(line))


def settings(line: list[str]) -> list[str]:
    """What follows each `--set` of a command."""
    return [text for flag, text in itertools.pairwise(line) if flag == "--set"]


def shown(heading: str) -> str:
    """The page's first output block that begins with this word."""
    return next(text for _, text in BLOCKS if text.startswith(heading))


def rows(table: str) -> list[tuple[str, ...]]:
    """The first two cells of each line of three or more, its heading among them."""
    lines = (re.split(r"\s{2,}", line.strip()) for line in table.splitlines())
    return [(cells[0], cells[1]) for cells in lines if len(cells) > 2]


def functions(source: str, line: int) -> list[str]:
    """Names of the functions that a line stands in."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]


def test_every_command_can_be_typed() -> None:
    asked = asked_of_the_tool()
    parser = make_parser()
    for words in asked:
        parser.parse_args(words[1:])  # exits where it can't be
    assert {words[1] for words in asked} >= {
        *("run", "show", "compare", "sensitivity", "whatif", "export", "runs"),
    }
    flags = {word for words in asked for word in words if word.startswith("--")}
    assert flags >= {"--add-reference", "--against", "--fail-above"}


def test_its_files_are_the_examples() -> None:
    copied = [word for words in commands() if words[0] == "cp" for word in words]
    for name in FILES:
        assert f"../examples/{name}" in copied
    (experiment,) = [text for language, text in BLOCKS if language == "yaml"]
    assert experiment in EXPERIMENT, "the page shows the example as it is, from its name on"
    for flag in {
        word for words in commands() for word in re.findall(r"--(?:half|fault)", str(words))
    }:
        assert f'"{flag}"' in SCRIPT


def test_what_is_set_can_be_set() -> None:
    """Every `--set` of the page, in blocks and in sentences, changes the example."""
    plain = read_experiment(EXPERIMENT, "own-script.yaml")
    inline = [settings(shlex.split(text)) for text in re.findall(r"`(--set [^`]+)`", PAGE)]
    of_lines = [settings(words) for words in asked_of_the_tool()] + inline
    changes = [overrides for overrides in of_lines if overrides]
    assert len(changes) >= 4
    for overrides in changes:
        assert read_experiment(EXPERIMENT, "own-script.yaml", overrides) != plain, overrides


def test_keys_and_networks_that_sentences_name_are_there() -> None:
    """A metric that the page writes out, and a catalog's network."""
    (metric,) = re.findall(r"`(\{name: step_time_s[^`]+\})`", PAGE)
    (environment,) = re.findall(r"`(python: [^`]+)`", PAGE)
    text = EXPERIMENT.replace("    metrics:\n", f"    {environment}\n    metrics:\n")
    changed = re.sub(r"\{name: step_time_s.*\}", lambda _: metric, text)
    (workload,) = read_experiment(changed, "own-script.yaml").workloads
    assert workload.kind == "command"
    assert workload.python is not None
    assert (workload.metrics[0].json_key, workload.metrics[0].scale) == (None, 0.001)
    document = YAML(typ="safe", pure=True).load(EXPERIMENT)
    keys = {*document["cluster"], *document["workloads"][0]["metrics"][0]}
    assert keys <= set(re.findall(r"\w+", PAGE))
    asked = [
        words[words.index("--network") + 1] for words in asked_of_the_tool() if "--network" in words
    ]
    assert asked
    assert all(map(parse_network, asked))


def test_lines_that_outputs_name_are_the_scripts() -> None:
    found = re.findall(r"own_script\.py:(\d+)\s+in\s+([\w<>]+)", PAGE)
    places = {(int(line), function) for line, function in found}
    lines = SCRIPT.splitlines()
    said = {lines[line - 1].strip(): function for line, function in places}
    assert said == {
        'raise KeyError("labels")': "next_batch",
        "time.sleep(1)": "next_batch",
        "loss.backward()": "<module>",
    }
    for line, function in places:
        assert (functions(SCRIPT, line) or ["<module>"]) == [function]


def test_outputs_name_the_examples_networks() -> None:
    """Networks and their rates, cases, and the steps that a launch keeps of 30."""
    experiment = read_experiment(EXPERIMENT, "own-script.yaml")
    assert tuple(name for name, _ in rows(shown("network"))[1:]) == NETWORKS
    assert {network.name for network in experiment.networks} <= set(NETWORKS)
    labels = set(re.findall(r"own-script \dx\d", PAGE))
    assert labels == {f"own-script {nodes}x{ranks}" for nodes, ranks in ((1, 1), (2, 1))}
    counts = re.findall(r"^(?:one node|slow|fast|reference) +(\d+) +0\.", PAGE, re.M)
    steps = 30 - experiment.workloads[0].metrics[0].skip_first
    assert len(counts) == len(NETWORKS)
    assert all(int(count) % steps == 0 for count in counts)


def test_it_is_one_page() -> None:
    assert len(PAGE.split()) < 1500
    assert "(tutorial.md)" not in PAGE


def test_it_stands_between_readme_and_reference() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    places = [readme.index(words) for words in ("make quickstart", "tutorial.md", "experiments.md")]
    assert places == sorted(places)


def test_its_python_is_python() -> None:
    (text,) = [text for language, text in BLOCKS if language == "python"]
    compile(text, "docs/tutorial.md", "exec")


@pytest.fixture
def mine(empty_folder: Path) -> Path:
    """A folder as the page's first commands make it."""
    for name in FILES:
        shutil.copy(EXAMPLES / name, empty_folder)
    return empty_folder


@pytest.mark.slow
@pytest.mark.namespaces
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(WITHOUT_TORCH, id="scripted"),
        pytest.param(COMMAND, id="real", marks=[pytest.mark.thorough, pytest.mark.measuring]),
    ],
)
def test_from_the_run_to_its_removal(mine: Path, command: tuple[str, ...]) -> None:
    """One launch of eight steps a case; which time they take is not judged. The script under
    torchrun, which imports torch in eight processes, is thorough: tests/probes/test_command.py runs
    one, and scripted ranks say here what it says."""

    def do(*arguments: str) -> str:
        done = run_command(*arguments, folder=mine, command=command, **COLUMNS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ran = do(*typed("--add-reference"), *SHORT, *FEW_STEPS)
    networks = [row for row in rows(shown("network")) if row[0] not in LEFT_OUT]
    assert rows(ran)[: len(networks)] == networks
    assert re.search(r"^fast 2x1\n  \S", ran, re.M), ran

    assert rows(do(*typed("show")))[: len(networks)] == networks
    compared = do("compare", "last")
    assert "compare last" in PAGE
    assert re.sub(r"\s+", " ", compared).count("own-script 2x1 reference") == 1
    (heading,) = re.findall(r"^case .*", shown("case"), re.M)
    assert heading.split()[:6] == re.findall(r"^case .*", compared, re.M)[0].split()[:6]

    do(*typed("export", "--format"))
    with (mine / "trials.csv").open(encoding="utf-8", newline="") as file:
        trials = list(csv.DictReader(file))
    names = [name for name, _ in networks[1:]]
    assert sorted(row["network"] for row in trials) == sorted(names)
    assert all(float(row["step_time_s"]) > 0 for row in trials)
    assert "step_time_s" in do(*typed("export", "--describe"))

    (program,) = [text for language, text in BLOCKS if language == "python"]
    python = run_command("-c", program, folder=mine, command=(sys.executable,))
    assert python.returncode == 0, python.stderr
    cases, table = shown("own-script 1x1").split("count")
    for line in cases.strip().splitlines():
        label = line.rpartition(" ")[0]
        assert label.endswith(LEFT_OUT) or f"{label} " in python.stdout
    assert python.stdout.split("count")[1].split()[:3] == table.split()[:3]
    for network in names:
        assert re.search(rf"^{network} +3 +\d", python.stdout, re.M), "eight steps but five"

    name = only_run(mine).name
    assert re.search(rf"^{name} +last +complete +2 of 2 ", do("runs"), re.M)
    do(*(word for word in typed("--remove") if word != "last~1"))
    assert not list(mine.glob("runs/own-script-*"))


@pytest.mark.thorough
@pytest.mark.measuring
@pytest.mark.namespaces
def test_the_crash_is_told_as_on_the_page(mine: Path) -> None:
    crash = next(words[1:] for words in commands() if "--fault, crash" in str(words))
    failed = run_command(*crash, *SHORT, folder=mine, **COLUMNS)
    assert failed.returncode == 3, failed.stdout + failed.stderr
    headline = shown("Every trial failed: rank 1 crashed")
    assert " ".join(headline.split()) in " ".join(failed.stdout.split())
    assert "exit code is 3" in PAGE
