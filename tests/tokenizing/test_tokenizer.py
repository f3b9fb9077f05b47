"""Are ids what the tokenizer's file says, with nothing cut, padded or fetched?"""

import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokenizing.made_tokenizers import say, word_tokenizer

from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.tokenizer import ByteTokenizer, FileTokenizer, open_tokenizer

pytest.importorskip("tokenizers")


def ids_of(tokenizer: object, *texts: str) -> list[list[int]]:
    assert isinstance(tokenizer, (ByteTokenizer, FileTokenizer))
    return [list(map(int, ids)) for ids in tokenizer.encode_records(texts)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_bytes_give_the_text_back(text: str) -> None:
    (ids,) = ids_of(open_tokenizer("bytes"), text)
    assert bytes(ids).decode() == text


def test_a_file_and_its_folder_are_the_same(tmp_path: Path) -> None:
    folder = word_tokenizer(tmp_path)
    by_folder, by_file = open_tokenizer(str(folder)), open_tokenizer(str(folder / "tokenizer.json"))
    assert by_folder.sha256 == by_file.sha256
    assert by_folder.vocabulary == 11
    assert ids_of(by_folder, "a b zz c") == ids_of(by_file, "a b zz c") == [[3, 4, 0, 5]]
    assert by_folder.words == "tokenizer.json (11 tokens)"


def test_its_own_truncation_and_padding_are_off(tmp_path: Path) -> None:
    tokenizer = open_tokenizer(str(word_tokenizer(tmp_path, truncates=True)))
    assert ids_of(tokenizer, "a b c d a", "b") == [[3, 4, 5, 6, 3], [4]]


@pytest.mark.parametrize("told", ["</s>", {"content": "</s>", "lstrip": False}])
def test_records_end_with_the_end_token_once(tmp_path: Path, told: object) -> None:
    say(word_tokenizer(tmp_path, adds_start=True), eos_token=told, pad_token=None)
    tokenizer = open_tokenizer(str(tmp_path))
    assert tokenizer.ends_samples
    assert ids_of(tokenizer, "a b", "c </s>") == [[1, 3, 4, 2], [1, 5, 2]]
    as_they_are = tokenizer.encode_as_they_are(["a b"])
    assert [list(ids) for ids in as_they_are] == [[3, 4]]


def test_another_end_token_is_another_tokenizer(tmp_path: Path) -> None:
    plain = open_tokenizer(str(word_tokenizer(tmp_path)))
    say(tmp_path, eos_token="</s>")
    assert not plain.ends_samples
    assert open_tokenizer(str(tmp_path)).sha256 != plain.sha256


def test_what_can_not_be_opened_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> str:
        with pytest.raises(InputError) as error:
            open_tokenizer(name)
        return str(error.value)

    assert "no tokenizer `gpt2`: it is `bytes`, a tokenizer.json" in refused("gpt2")
    assert "nothing is downloaded; AutoTokenizer" in refused("gpt2")
    assert f"the folder `{tmp_path}` has no tokenizer.json" in refused(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "is no tokenizer: " in refused(str(tmp_path))
    say(word_tokenizer(tmp_path), eos_token="<end>")
    assert "names the end token '<end>', and `tokenizer.json` has none" in refused(str(tmp_path))
    (tmp_path / "tokenizer_config.json").write_text("[")
    assert "tokenizer_config.json` can't be read" in refused(str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'broadgauge[data]'" in refused(str(tmp_path))


def test_what_a_tokenizer_can_not_read_is_said(tmp_path: Path) -> None:
    """A word that is none of its words, where its unknown token is none either; an id that its
    post-processor makes up, of which two bytes would make another token's."""
    path = word_tokenizer(tmp_path, adds_start=True) / "tokenizer.json"
    text = path.read_text()
    told = json.loads(text)
    told["model"]["unk_token"] = "[NONE]"
    path.write_text(json.dumps(told))
    with pytest.raises(InputError, match=r"tokenizer.json` can't read a text: .*\[UNK\]"):
        open_tokenizer(str(tmp_path)).encode_records(["a zz"])
    told = json.loads(text)
    told["post_processor"]["special_tokens"]["<s>"]["ids"] = [70001]
    path.write_text(json.dumps(told))
    with pytest.raises(InputError, match="gives the id 70001, and its vocabulary ends with 10"):
        open_tokenizer(str(tmp_path)).encode_records(["a b"])
