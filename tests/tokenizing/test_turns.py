"""Is the loss of a conversation where its assistant speaks, and nowhere else?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.tokenizing.made_tokenizers import WORDS, say, word_tokenizer
from tests.tokenizing.reading import samples_in

from broadgauge.messages.prepared_set import COUNTED
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.chat import (
    ChatTemplate,
    ConversationError,
    chat_template,
    chatml,
)
from broadgauge.tokenizing.preparing import PreparedFolder, prepare
from broadgauge.tokenizing.request import PrepareRequest
from broadgauge.tokenizing.tokenizer import ByteTokenizer
from broadgauge.tokenizing.turns import written_turns

CHATML = chat_template(ByteTokenizer(), None)
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Où?"},
    {"role": "assistant", "content": " Là.\n"},
    {"role": "user", "content": "Là.?"},
    {"role": "assistant", "content": "Oui"},
]


def prepared(folder: Path, *talks: Any, **settings: Any) -> PreparedFolder:
    path = folder / "talks.jsonl"
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    keys = {"field": "messages", "is_conversation": True, "loss_on": "assistant"} | settings
    return prepare(PrepareRequest(source=str(path), **keys))


def counted_ids(made: PreparedFolder) -> list[list[int]]:
    """Of each sample, the tokens that the loss counts."""
    flags = iter((made.folder / COUNTED).read_bytes())
    return [[each for each in sample if next(flags)] for sample in samples_in(made.folder)]


def said(talk: list[dict[str, str]], template: ChatTemplate = CHATML) -> list[str]:
    written = written_turns(talk, template)
    assert written.text == template.render(talk)
    return [written.text[turn.begin : turn.end] for turn in written.turns]


def test_the_assistant_s_words_and_the_end_of_its_turn_are_counted(tmp_path: Path) -> None:
    assert said(TALK) == [" Là.\n<|im_end|>", "Oui<|im_end|>"]
    made = prepared(tmp_path, TALK)
    (ids,) = counted_ids(made)
    assert bytes(ids).decode() == " Là.\n<|im_end|>Oui<|im_end|>"
    assert made.described.num_counted == len(ids)
    assert f"loss on {len(ids)} of them" in made.described.description


def test_up_to_the_tokenizer_s_end_token_where_it_ends_a_turn(tmp_path: Path) -> None:
    folder = word_tokenizer(tmp_path / "words")
    template = "{% for m in messages %}{{ m.role }} {{ m.content.strip() }} </s> {% endfor %}"
    say(folder, chat_template=template, eos_token="</s>")
    talk = [{"role": "user", "content": "a b"}, {"role": "assistant", "content": " c a "}]
    made = prepared(tmp_path, [*talk, *talk], tokenizer=str(folder))
    (words,) = ([WORDS[each] for each in ids] for ids in counted_ids(made))
    assert words == ["c", "a", "</s>"] * 2
    template = "{% for m in messages %}{{ m.content }} {% endfor %}</s>"
    say(folder, chat_template=template, eos_token="</s>")
    made = prepared(tmp_path, [*talk, talk[0]], tokenizer=str(folder))
    (words,) = ([WORDS[each] for each in ids] for ids in counted_ids(made))
    assert words == ["c", "a"]  # the end is the user's


def test_a_sample_with_nothing_to_predict_is_left_out_and_counted(tmp_path: Path) -> None:
    silent = [TALK[:2], [*TALK[:2], {"role": "assistant", "content": " "}]]
    made = prepared(tmp_path, TALK, *silent, TALK)
    assert made.described.num_samples == 2
    assert made.described.left_out == {"no token of an assistant": 2}
    cut = prepared(tmp_path, TALK, *silent, [TALK[-1]], max_length=40, over_length="cut")
    assert (cut.described.num_samples, cut.described.num_cut) == (1, 3)
    with pytest.raises(InputError, match="gives no sample: 2 no token of an assistant"):
        prepared(tmp_path, *silent)


def test_it_is_another_set_than_one_with_all_tokens(tmp_path: Path) -> None:
    masked, whole = prepared(tmp_path, TALK), prepared(tmp_path, TALK, loss_on="all")
    assert samples_in(masked.folder) == samples_in(whole.folder)
    assert masked.described.key != whole.described.key
    assert whole.described.num_counted is None
    assert not (whole.folder / COUNTED).exists()
    with pytest.raises(InputError, match="is of conversations"):
        prepared(tmp_path, TALK, is_conversation=False)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (lambda talk: talk[-1]["content"], "takes contents apart"),
        (lambda talk: "".join(each["content"][:-1] for each in talk), "cuts a content"),
        (lambda talk: "".join(each["content"] * 2 for each in talk), "takes contents apart"),
        (lambda talk: str([len(each["content"]) for each in talk]), "takes contents apart"),
        (lambda talk: chatml([*talk[1:-1], talk[0], talk[-1]]), "changes contents or their order"),
        (lambda talk: chatml(talk).upper(), "changes contents or their order"),
    ],
)
def test_a_template_that_hides_who_says_what_is_refused(template: Any, words: str) -> None:
    odd = ChatTemplate(words="odd", sha256="", render=template)
    with pytest.raises(ConversationError, match=re.escape(words)):
        written_turns(TALK, odd)


def test_marks_of_the_user_s_own_are_refused() -> None:
    with pytest.raises(ConversationError, match=r"message 1 holds U\+E000"):
        written_turns([TALK[0], {"role": "user", "content": "a\ue000"}], CHATML)
