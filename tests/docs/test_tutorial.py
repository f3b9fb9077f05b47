"""docs/tutorial.md: its commands are there, and its files are the examples'."""

import re
import shlex
from pathlib import Path

from broadgauge.cli.main import make_parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.M | re.S)
"""Language and text."""
FILES = ("own_script.py", "own-script.yaml")
SHELL = ("broadgauge ", "cd ", "cp ", "mkdir ", "source ")


def commands() -> list[list[str]]:
    """Each line of a block that is typed, without its comment."""
    typed = [text for _, text in BLOCKS if text.startswith(SHELL)]
    return [shlex.split(line, comments=True) for text in typed for line in text.splitlines()]


def test_every_command_can_be_typed() -> None:
    asked = [words for words in commands() if words[0] == "broadgauge"]
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
    example = (ROOT / "examples" / "own-script.yaml").read_text(encoding="utf-8")
    assert experiment in example, "the page shows the example as it is, from its name on"
    script = (ROOT / "examples" / "own_script.py").read_text(encoding="utf-8")
    for flag in {
        word for words in commands() for word in re.findall(r"--(?:half|fault)", str(words))
    }:
        assert f'"{flag}"' in script


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
