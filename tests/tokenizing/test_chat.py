"""Does a conversation become the text that its template says, in a sandbox?"""

import re
from pathlib import Path

import pytest
from tests.tokenizing.made_tokenizers import say, word_tokenizer

from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.chat import ConversationError, chat_template, check_messages
from broadgauge.tokenizing.tokenizer import ByteTokenizer, FileTokenizer, open_tokenizer

pytest.importorskip("tokenizers")
MESSAGES = [{"role": "user", "content": "a\nb"}, {"role": "bot", "content": "{c}"}]


def with_template(folder: Path, template: object, **settings: object) -> FileTokenizer:
    say(word_tokenizer(folder), chat_template=template, **settings)
    tokenizer = open_tokenizer(str(folder))
    assert isinstance(tokenizer, FileTokenizer)
    return tokenizer


def test_chatml_is_written_where_there_is_no_other(tmp_path: Path) -> None:
    expected = "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>bot\n{c}<|im_end|>\n"
    plain = open_tokenizer(str(word_tokenizer(tmp_path)))
    for tokenizer in (ByteTokenizer(), plain):
        template = chat_template(tokenizer, None)
        assert template.words == "ChatML"
        assert template.render(MESSAGES) == expected
    with pytest.raises(InputError, match="brings no chat template"):
        chat_template(plain, "tokenizer")


@pytest.mark.parametrize("is_named", [False, True])
def test_the_tokenizer_s_own_is_used_and_can_be_refused(tmp_path: Path, is_named: bool) -> None:
    own = (
        "{{ bos_token }}{% for m in messages %}\n"
        "{% generation %}[{{ m.role }}] {{ m.content | tojson }}{% endgeneration %}\n"
        "{% if loop.last %}{% break %}{% endif %}\n"
        "{% endfor %}"
    )
    told = [{"name": "default", "template": own}, {"name": "x", "template": "x"}]
    tokenizer = with_template(tmp_path, told if is_named else own, bos_token="<s>")
    template = chat_template(tokenizer, None)
    assert template.render(MESSAGES) == '<s>[user] "a\\nb"[bot] "{c}"'
    assert template.words == "the tokenizer's (tokenizer_config.json)"
    assert chat_template(tokenizer, "chatml").words == "ChatML"
    assert chat_template(tokenizer, "chatml").sha256 != template.sha256


def test_a_template_in_a_file_of_its_own_comes_first(tmp_path: Path) -> None:
    tokenizer = with_template(tmp_path, "x")
    (tmp_path / "chat_template.jinja").write_text("{{ messages | length }} messages")
    assert chat_template(tokenizer, None).render(MESSAGES) == "2 messages"


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception('roles must alternate') }}",
        "{{ strftime_now('%d') }}",
        "{{ messages.append(1) }}",
        "{{ 1 / 0 }}",
        "{{ messages[0].content + 1 }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'a' * 10 ** 18 }}",
        "{{ cycler() }}",
    ],
)
def test_what_a_template_may_not_do_is_an_error_of_the_record(
    tmp_path: Path, template: str
) -> None:
    render = chat_template(with_template(tmp_path, template), None).render
    with pytest.raises(ConversationError, match="the chat template refuses it"):
        render(MESSAGES)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for m in messages %}", "Unexpected end of template"),
        ("{% break %}", "'break' outside loop"),
        ("{% for m in messages %}" * 25 + "{% endfor %}" * 25, "too many statically nested"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "maximum recursion depth"),
    ],
    ids=["cut", "break", "loops", "brackets"],
)
def test_a_template_that_can_not_be_read_is_said(tmp_path: Path, template: str, words: str) -> None:
    with pytest.raises(InputError, match=f"can't be read: {words}"):
        chat_template(with_template(tmp_path, template), None)


def test_names_of_templates_may_be_anything(tmp_path: Path) -> None:
    told = [{"name": ["x"], "template": "x"}, {"name": "default", "template": "\ud800"}]
    assert chat_template(with_template(tmp_path, told), None).render(MESSAGES) == "\ud800"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", "`m` is no list of messages, but str 'a'"),
        (["a"], "`m[0]` is no message, but str 'a'"),
        ([{"role": "user"}], "`m[0].content` is not there, and must be a text"),
        ([{"role": "u", "content": None}], "`m[0].content` is null, and must be a text"),
        ([{"role": 1, "content": "a"}], "`m[0].role` is int '1', and must be a text"),
    ],
)
def test_what_is_no_conversation_is_said(value: object, words: str) -> None:
    with pytest.raises(ConversationError, match=re.escape(words)):
        check_messages(value, "m")
