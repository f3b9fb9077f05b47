"""Proves manifests/yaml_text.py: whatever it writes is read back as it was, by readers of YAML 1.1
and 1.2 alike."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from broadgauge.manifests.files import ManifestFile, to_yaml
from broadgauge.manifests.yaml_text import yaml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WORDS = st.sampled_from(
    ["no", "Yes", "on", "~", "null", "1_000", "12:30", "0x1f", "1e3", "- a", "a: b", "#", "{", "*x"]
)
LINES = st.lists(st.sampled_from(["a", " b", "", "x: y", "# c", "---", "\t", "é", "…"]), max_size=6)
SCALARS = st.one_of(
    TEXTS,
    WORDS,
    LINES.map("\n".join),
    st.booleans(),
    st.integers(),
    st.none(),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | WORDS, inner, max_size=4),
    max_leaves=12,
)


def parsed(text: str, version: tuple[int, int]) -> Any:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    return yaml.load(text)


@given(st.dictionaries(TEXTS | WORDS, DATA, max_size=4))
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    assert parsed(yaml_text(data), (1, 2)) == data


@given(st.dictionaries(st.text("abc", min_size=1), TEXTS | WORDS | LINES.map("\n".join)))
def test_older_readers_take_texts_for_texts(data: dict[str, str]) -> None:
    assert parsed(yaml_text(data), (1, 1)) == data


def test_script_stands_in_lines_that_people_can_read() -> None:
    text = yaml_text({"data": {"train.py": "import os\n\nif os:\n    print(1)\n"}})
    assert text == ("data:\n  train.py: |\n    import os\n\n    if os:\n        print(1)\n")


@pytest.mark.parametrize("word", ["no", "On", "NULL", "y", "nan", "0o14", "1:30", "1_0", "--x", ""])
def test_words_that_mean_something_else_to_a_reader_are_quoted(word: str) -> None:
    assert yaml_text({"a": word, word: 1}).startswith(f'a: "{word}"\n"{word}": 1')


@pytest.mark.parametrize("value", [object(), 1.5, b"a"])
def test_what_no_manifest_holds_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no plain data"):
        yaml_text({"when": value})


@given(TEXTS)
def test_comment_ends_nowhere_but_at_its_end(comment: str) -> None:
    text = to_yaml(ManifestFile(path="a.yaml", comment=comment, objects=({"kind": "Pod"},)))
    assert parsed(text, (1, 1)) == {"kind": "Pod"}
    assert parsed(text, (1, 2)) == {"kind": "Pod"}
