"""How does a conversation become one text?

Our own template is ChatML's: for each message

    <|im_start|>ROLE⏎CONTENT<|im_end|>⏎

A tokenizer's folder may bring its own, as `chat_template` of tokenizer_config.json or as
chat_template.jinja. It is run in jinja2's sandbox with what transformers gives it (`messages`,
`add_generation_prompt` false, the special tokens' texts, `raise_exception`, `tojson`, loop
controls, `generation` blocks), but for `strftime_now`: a text with today's date in it would be
another one tomorrow. Source: transformers 5.24, utils/chat_template_utils.py; it asks for jinja2
3.1.6, since older sandboxes let templates out.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broadgauge.probes.training.records import kind_of
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing.request import TemplateChoice
from broadgauge.tokenizing.tokenizer import (
    INSTALL,
    SETTINGS,
    ByteTokenizer,
    FileTokenizer,
    token_text,
)

TEMPLATE_FILE = "chat_template.jinja"
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")
Message = dict[str, Any]
_OF_TEMPLATES = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError,
    TypeError, ValueError,
)  # fmt: skip
"""What Python raises where a template is wrong: it is compiled to Python and run."""


class ConversationError(ValueError):
    """One conversation can't be made a text; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    words: str
    sha256: str
    render: Callable[[list[Message]], str]
    """Raises ConversationError."""
    turn_end: str | None = None
    """What it writes behind a message; None: the tokenizer's end token, if any."""


def chat_template(
    tokenizer: ByteTokenizer | FileTokenizer, choice: TemplateChoice | None
) -> ChatTemplate:
    """The one that is asked for; without a choice the tokenizer's own, else ChatML."""
    own = None if isinstance(tokenizer, ByteTokenizer) else _own_source(tokenizer)
    if choice == "tokenizer" and own is None:
        raise InputError(
            f"the tokenizer {tokenizer.words} brings no chat template",
            hint="leave --template out: conversations are then written as ChatML",
        )
    if own is None or choice == "chatml" or isinstance(tokenizer, ByteTokenizer):
        return ChatTemplate(
            words="ChatML", sha256=_sha256(CHATML), render=chatml, turn_end=CHATML_END
        )
    return _jinja_template(own, tokenizer)


CHATML_END = "<|im_end|>"
CHATML = f"<|im_start|>{{role}}\n{{content}}{CHATML_END}\n"


def chatml(messages: list[Message]) -> str:
    return "".join(
        CHATML.format_map({"role": each["role"], "content": each["content"]}) for each in messages
    )


def check_messages(value: Any, field: str) -> list[Message]:
    """The messages of a conversation, none of them or each with `role` and `content`.

    Raises ConversationError.
    """
    if not isinstance(value, list):
        raise ConversationError(f"`{field}` is no list of messages, but {kind_of(value)}")
    for number, message in enumerate(value):
        if not isinstance(message, dict):
            raise ConversationError(f"`{field}[{number}]` is no message, but {kind_of(message)}")
        for key in ("role", "content"):
            if not isinstance(message.get(key), str):
                seen = f"is {kind_of(message[key])}" if key in message else "is not there"
                raise ConversationError(f"`{field}[{number}].{key}` {seen}, and must be a text")
    return value


def _own_source(tokenizer: FileTokenizer) -> str | None:
    """The template's text; of several with names the one named `default`."""
    path = tokenizer.folder / TEMPLATE_FILE
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"`{path}` can't be read: {error}") from error
    told = tokenizer.settings.get("chat_template")
    if isinstance(told, list):
        named = [each for each in told if isinstance(each, dict) and each.get("name") == "default"]
        told = named[-1].get("template") if named else None
    return told if isinstance(told, str) else None


def _jinja_template(source: str, tokenizer: FileTokenizer) -> ChatTemplate:
    if importlib.util.find_spec("jinja2") is None:
        raise InputError(
            f"the chat template of {tokenizer.folder} needs the package `jinja2`, not installed "
            "here",
            hint=f"{INSTALL}, or --template chatml",
        )
    from jinja2 import TemplateError

    environment = _sandbox()
    try:
        compiled = environment.from_string(source)
    except (TemplateError, *_OF_TEMPLATES) as error:
        raise InputError(
            f"the chat template of {tokenizer.folder} can't be read: {error}",
            hint="--template chatml writes conversations as ChatML",
        ) from error
    texts = {name: token_text(tokenizer.settings, name) for name in SPECIAL_TOKENS}
    special = {name: text for name, text in texts.items() if text is not None}

    def render(messages: list[Message]) -> str:
        try:
            return str(compiled.render(messages=messages, add_generation_prompt=False, **special))
        except (TemplateError, *_OF_TEMPLATES) as error:
            raise ConversationError(
                f"the chat template refuses it: {str(error) or type(error).__name__}"
            ) from error

    return ChatTemplate(
        words=f"the tokenizer's ({_origin(tokenizer)})",
        sha256=_sha256(source + json.dumps(special, sort_keys=True)),
        render=render,
    )


def _sandbox() -> Any:
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):  # type: ignore[misc]  # jinja2 is Any to the type checker
        """`{% generation %}` marks what an assistant said; its content is written as it is."""

        tags = frozenset({"generation"})

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    return environment


def _origin(tokenizer: FileTokenizer) -> str:
    return TEMPLATE_FILE if (tokenizer.folder / TEMPLATE_FILE).is_file() else SETTINGS


def _to_json(value: Any, **settings: Any) -> str:
    """Without jinja2's own escapes for HTML. Source: as the module's."""
    return json.dumps(value, **({"ensure_ascii": False} | settings))


def _raise_exception(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
