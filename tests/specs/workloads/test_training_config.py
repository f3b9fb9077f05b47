"""Proves specs/workloads/training_config.py: the words that bash, jq and sed make of it."""

import json
import os
import shutil
import subprocess
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly

from broadgauge.specs.workloads.training_config import TrainingConfigError, parse_training_config

IN_SHELL = r"""
set -f
for word in $(jq -r '. | to_entries | .[] | ("--" + .key + " " + (.value | tostring))' \
  | sed "s/ true//")
do printf '%s\0' "$word"; done
"""
"""The article's substitution, each word ended by a zero byte; `set -f` keeps files out of it.
Source: the Korean copy of the article that specs/workloads/training_config.py names."""


def words(text: str, **more: int) -> list[str]:
    config, _ = parse_training_config(text, "config.json", names_module=False, **more)
    return list(config.arguments)


def by_shell(text: str) -> list[str]:
    if shutil.which("jq") is None:
        pytest.skip("no jq here")
    ended = subprocess.run(
        ["bash", "-c", IN_SHELL],
        input=text.encode(),
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )
    return ended.stdout.decode().split("\0")[:-1]


@cache
def is_jq_of_doubles() -> bool:
    """Later ones than 1.6 print a number's own digits: 1.0 as 1.0."""
    return by_shell('{"n": 1.0}')[1] == "1"


def test_words() -> None:
    text = json.dumps(
        {
            "flag": True,
            "word": "true",
            "not": False,
            "none": None,
            "empty": "",
            "spaces": "a  b\tc",
            "within": "a true story",
            "lines": "one true\ntwo true true",
            "list": [1, 2.5, "x"],
            "object": {"z": 1, "a": True},
        }
    )
    found = words(text)
    assert found == [
        *("--flag", "--word", "--not", "false", "--none", "null", "--empty"),
        *("--spaces", "a", "b", "c", "--within", "a", "story"),
        *("--lines", "one", "two", "true", "--list", '[1,2.5,"x"]'),
        *("--object", '{"z":1,"a":true}'),
    ]
    assert by_shell(text) == found


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("1.0", "1"),
        ("1e-4", "0.0001"),
        ("1e-5", "1e-05"),
        ("2.5e10", "25000000000"),
        ("1e15", "1000000000000000"),
        ("1e17", "1e+17"),
        ("1e19", "1e+19"),
        ("-0.0", "-0"),
        ("-12.50", "-12.5"),
        ("123456789012345678", "123456789012345680"),
        ("1.5e-7", "1.5e-07"),
    ],
)
def test_numbers(number: str, shown: str) -> None:
    assert words(f'{{"n": {number}}}') == ["--n", shown]
    if is_jq_of_doubles():
        assert by_shell(f'{{"n": {number}}}') == ["--n", shown]


def test_what_is_the_cases_and_torchruns_is_no_argument() -> None:
    text = '{"nnodes": 8, "nproc_per_node": "gpu", "module": "a.b", "seed": 42, "fast": true}'
    config, max_batch_len = parse_training_config(text, "c.json", names_module=True)
    assert (config.nnodes, config.nproc_per_node, config.module) == ("8", "gpu", "a.b")
    assert config.arguments == ("--seed", "42", "--fast")
    assert max_batch_len is None
    assert config.shape_words == "nnodes 8 and nproc_per_node gpu"


def test_max_batch_len_is_the_files_unless_it_is_said() -> None:
    text = '{"a": 1, "max_batch_len": 35000, "b": 2}'
    config, found = parse_training_config(text, "c.json", names_module=False)
    assert (found, config.arguments[2:4]) == (35000, ("--max_batch_len", "35000"))
    config, found = parse_training_config(text, "c.json", max_batch_len=60000, names_module=False)
    assert (found, config.arguments[2:4]) == (60000, ("--max_batch_len", "60000"))
    assert words('{"a": 1}', max_batch_len=7) == ["--a", "1", "--max_batch_len", "7"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "c.json:1:1: no JSON"),
        ('{\n  "a": 1,\n}', "c.json:3:1: no JSON"),
        ("[1]", "a list, and an object is wanted"),
        ("7", "`7`, and an object is wanted"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"module": "m", "a": 1e999}', "`a`: a number is too large"),
        (
            '{"module": "m", "data": "/mnt/*.jsonl"}',
            "`data`: the article's shell would look for files named",
        ),
        ('{"module": "m", "a": "\\u0000"}', "`a`: no argument can hold"),
        ('{"module": "m", "a": "\\ud800"}', "`a`: no argument can hold"),
        ('{"module": "m", "hf_token": "abc"}', "`hf_token` holds a secret"),
        ('{"module": "m", "password": 12345678}', "`password` holds a secret"),
        ('{"module": "m", "x": {"y": [{"token": "abc"}]}}', "`x` holds a secret"),
        ('{"module": "m", "x": ["hf_abcdefghij0123456789"]}', "`x` holds a secret"),
        ('{"module": "m", "hf_abcdefghij0123456789": 1}', "a key holds a secret"),
        ('{"module": "m", "x": "https://u:pw@host/x"}', "`x` holds a secret"),
        (f'{{"module": "m", "x": {"[" * 900}{"]" * 900}}}', "`x`: too deep"),
        ('{"seed": 1}', "names no `module`, and there is no `command`"),
        ('{"module": "train.py --fast"}', "takes a Python module's name, not `train.py --fast`"),
        ('{"module": 3}', "takes a Python module's name, not `3`"),
        ('{"rdzv_id": 3, "module": "a.b"}', "`rdzv_id` stands before `module`"),
        ('{"module": "a", "max_batch_len": "many"}', "takes a number of tokens, not `many`"),
        ('{"module": "a", "max_batch_len": 0}', "takes a number of tokens, not `0`"),
        (
            '{"architectures": ["GraniteForCausalLM"], "hidden_size": 4096}',
            r"a model's config.json \(GraniteForCausalLM\), and no training's",
        ),
        ('{"model_type": "llama", "hidden_size": 4096}', r"a model's config.json \(llama\)"),
    ],
)
def test_what_is_no_training_is_refused(text: str, says: str) -> None:
    with pytest.raises(TrainingConfigError, match=says) as caught:
        parse_training_config(text, "c.json", names_module=True)
    assert str(caught.value).startswith("c.json")


def test_a_model_type_alone_is_an_option_of_a_script() -> None:
    assert words('{"model_type": "llama"}') == ["--model_type", "llama"]


KEYS = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
TEXTS = st.text(alphabet="*abtrue \t\n/._-é{}\"'\\$`=", max_size=12)
WHOLE = st.integers(-(2**53), 2**53)
FRACTIONS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=-10, max_value=10).map(lambda each: round(each, 6)),
)


@costly(40)
@given(st.data())
def test_the_shell_makes_the_same_of_any_file(data: st.DataObject) -> None:
    numbers = st.one_of(WHOLE, FRACTIONS) if is_jq_of_doubles() else WHOLE
    plain = st.one_of(st.booleans(), st.none(), TEXTS, numbers)
    values = st.one_of(plain, st.lists(plain, max_size=3))
    text = json.dumps(data.draw(st.dictionaries(KEYS, values, max_size=8)))
    try:
        ours = words(text)
    except TrainingConfigError as error:
        ours = [str(error)]
        is_meant = "*" in text or "holds a secret" in ours[0]
    else:
        is_meant = ours == by_shell(text)
    assert is_meant, (text, ours)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        words(text)
    except TrainingConfigError:
        return
    assert text.strip().startswith("{")
