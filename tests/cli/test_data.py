"""What does `broadgauge data` print, and how does it end?"""

import hashlib
import importlib.util
import json
import os
from pathlib import Path

import pytest

from broadgauge.cli.main import main
from broadgauge.report.terminal.prepared_set import BAR_WIDTH, histogram_lines
from broadgauge.tokenizing.lengths import Bin


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["data", *words.split()]) == 0
    return capsys.readouterr().out


def refused(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["data", *words.split()]) == 2
    return capsys.readouterr().err


def test_a_synthetic_set_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed("prepare --synthetic samples=98,mean_length=14.5 --out set", capsys)
    assert "98 samples, 1,421 tokens" in said
    assert "mean 14.5" in said
    assert "50 %: 11, 75 %: " in said
    assert printed("show set", capsys) == said


def test_json_has_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.jsonl").write_text('{"t": "four"}\n{"t": ""}\n{"t": "sixsix"}\n')
    told = json.loads(printed("prepare a.jsonl --field t --json", capsys))
    assert told["lengths"] == {
        "mean": 5.0, "shortest": 4, "p25": 4, "median": 4, "p75": 6, "p95": 6, "p99": 6,
        "longest": 6,
    }  # fmt: skip
    assert told["left_out"] == {"empty": 1}
    assert told["num_records"] == 3
    assert not told["was_there"]
    assert sum(each["num_samples"] for each in told["histogram"]) == 2
    again = json.loads(printed("prepare a.jsonl --field t --json", capsys))
    assert again == told | {"was_there": True}
    assert json.loads(printed(f"show {told['folder']} --json", capsys)) == again


def test_what_does_not_fit_together_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    both = "prepare --synthetic samples=5,mean_length=5 --field text --max-length 9"
    assert "--field, --max-length is not of it" in refused(both, capsys)
    assert "one of them" in refused("prepare a.jsonl --field a --messages b", capsys)
    assert "add --messages" in refused("prepare a.jsonl --template chatml", capsys)
    assert "holds no conversations" in refused("prepare a.txt --as text --messages", capsys)
    assert "is no folder" in refused("show nothing", capsys)
    assert "needs `mean_length`" in refused("prepare --synthetic samples=5", capsys)


@pytest.mark.parametrize("words", ["prepare", "prepare a.txt --synthetic samples=5", ""])
def test_one_source_must_be_named(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["data", *words.split()])
    assert end.value.code == 2


def test_a_damaged_set_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    printed("prepare --synthetic samples=5,mean_length=5 --out set", capsys)
    path = Path("set/tokens.bin")
    path.write_bytes(b"\x01" * path.stat().st_size)
    assert "tokens.bin` was changed" in refused("show set", capsys)


def test_bars_are_as_long_as_their_share() -> None:
    counts = (800, 400, 1, 0)
    bins = [Bin(shortest=9 * n, longest=9 * n + 8, num_samples=c) for n, c in enumerate(counts)]
    bars = [line[len("27 – 35") + 2 :][:BAR_WIDTH].rstrip() for line in histogram_lines(bins)]
    assert bars == ["█" * BAR_WIDTH, "█" * (BAR_WIDTH // 2), "▏", ""]


def test_a_flag_that_says_nothing_of_the_source_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.txt").write_text("some text")
    Path("a.jsonl").write_text('{"text": "some text"}\n')
    said = refused("prepare a.txt --field x --over-length cut", capsys)
    assert "`a.txt` is read as text, where --field, --over-length says nothing" in said
    assert "--split says nothing" in refused("prepare a.jsonl --split test", capsys)


@pytest.mark.parametrize(
    ("line", "flags", "words"),
    [
        ('{"text": "torn', "", "a.jsonl:2: not a line of JSON: Unterminated string"),
        ('{"txet": "a"}', "", "a.jsonl:2: no key `text`; did you mean `txet`?"),
        ('{"text": 7}', "", "a.jsonl:2: `text` is no text, but int '7'"),
        ('{"text": "a text"}', "--messages text", "a.jsonl:1: `text` is no list of messages"),
        (
            '{"text": "longer"}',
            "--max-length 4 --over-length refuse",
            "a.jsonl:2: 6 tokens, and --max-length is 4",
        ),
    ],
)
def test_a_wrong_record_is_named_and_nothing_is_kept(
    line: str, flags: str, words: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.jsonl").write_text('{"text": "good"}\n' + line + "\n")
    assert words in refused(f"prepare a.jsonl {flags}", capsys)
    assert not cache.exists() or not any((cache / "data").iterdir())


def test_a_source_of_nothing_but_empty_samples_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.jsonl").write_text('{"text": ""}\n' * 3)
    assert "`a.jsonl` gives no sample: 3 empty" in refused("prepare a.jsonl", capsys)


def test_a_tokenizer_without_its_package_is_said_with_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.txt").write_text("some text")
    Path("tokenizer.json").write_text("{}")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = refused("prepare a.txt --tokenizer .", capsys)
    assert "needs the package `tokenizers`, not installed here" in said
    assert "hint: pip install 'broadgauge[data]'" in said


def test_what_is_no_text_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "`.` is a folder, and not text" in refused("prepare . --as text", capsys)
    assert main(["data", "prepare", ""]) == 2
    assert "the name of the source is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"num_samples": 2', '"num_samples": 0', "has no sample"),
        ('"num_samples": 2', '"num_samples": -1', "has no sample"),
        ('"num_tokens": 10', '"num_tokens": 9', "contradicts itself"),
    ],
)
def test_a_set_that_can_not_be_is_told(
    old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed("prepare --synthetic samples=2,mean_length=5 --out set", capsys)
    path = Path("set/set.json")
    path.write_text(path.read_text().replace(old, new))
    assert words in refused("show set", capsys)


def test_offsets_that_do_not_rise_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    printed("prepare --synthetic samples=3,mean_length=5 --out set", capsys)
    path, told = Path("set/offsets.bin"), Path("set/set.json")
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(b"".join(each.to_bytes(8, "little") for each in (0, 9, 2, 15)))
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    told.write_text(told.read_text().replace(before, after))
    assert "offsets.bin` does not rise from 0 to the 15 tokens" in refused("show set", capsys)


def test_a_description_that_is_a_pipe_is_not_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("set").mkdir()
    os.mkfifo("set/set.json")
    assert "`set/set.json` is no file" in refused("show set", capsys)


def test_on_a_narrow_terminal_values_stand_below_their_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    said = printed("prepare --synthetic samples=3,mean_length=5 --out set", capsys).splitlines()
    begin = said.index("source")
    assert said[begin + 1] == "  synthetic: 3 samples of 5"
