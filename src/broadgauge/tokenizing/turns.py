"""Which part of a conversation's text has the assistant said?

The contents of its messages are marked, the template writes the conversation, and the marks are
found again: a template may strip a content, and must leave it in one piece and in its place among
the others. What an assistant says ends with what ends its turn: ChatML's end, or up to the
tokenizer's end token where that comes before the next message's content.

The rule, loss on assistants' turns with their end and on nothing else, is InstructLab's. Source:
instructlab-training 0.16.2, data_process.py, `unmask_messages`; it marks with tokens of its own,
and looks for the end token over the next user's turn, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from broadgauge.tokenizing.chat import ChatTemplate, ConversationError, Message
from broadgauge.tokenizing.tokenizer import Ids

ASSISTANT = "assistant"
_BEGIN, _END = "\ue000", "\ue001"
"""Of Unicode's private use area, which no text should hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A part of a text that the assistant has said, in characters."""

    begin: int
    end: int
    next_content: int
    """Where the next message's content begins, or the text's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsOfText:
    """A conversation as a template writes it."""

    text: str
    turns: tuple[Turn, ...]


def written_turns(messages: list[Message], template: ChatTemplate) -> TurnsOfText:
    """The conversation's text, and what the assistant says in it. Raises ConversationError."""
    for number, message in enumerate(messages):
        if _BEGIN in message["content"] or _END in message["content"]:
            raise ConversationError(
                f"message {number} holds U+E000 or U+E001, which mark who says what"
            )
    marked = template.render([_marked(message) for message in messages])
    cores, text = _found(marked)
    said = [message for message in messages if message["content"].strip()]
    written = [text[begin:end] for begin, end in cores]
    if text != template.render(messages) or len(written) != len(said):
        raise ConversationError(
            "the chat template takes contents apart: which part is the assistant's can't be told"
        )
    if written != [message["content"].strip() for message in said]:
        raise ConversationError(
            "the chat template changes contents or their order: which part is the assistant's "
            "can't be told"
        )
    contents = [_whole(text, core, each) for core, each in zip(cores, said, strict=True)]
    begins = [*(begin for begin, _ in contents[1:]), len(text)]
    return TurnsOfText(
        text=text,
        turns=tuple(
            Turn(begin=begin, end=_behind(end, text, template.turn_end), next_content=next_content)
            for (begin, end), next_content, each in zip(contents, begins, said, strict=True)
            if each["role"] == ASSISTANT
        ),
    )


def counted_tokens(ids: Ids, begins: Ids, turns: Iterable[Turn], end_id: int | None) -> Ids:
    """bool[tokens]: is it the assistant's, so that the loss counts its prediction?

    `begins`: of each token, its first character. A token that begins before what the assistant
    says is not its own.
    """
    counted = np.zeros(len(ids), dtype=bool)
    for turn in turns:
        first, behind, limit = np.searchsorted(
            begins, [turn.begin, turn.end, turn.next_content], side="left"
        )
        if end_id is not None:
            ends = np.flatnonzero(ids[behind:limit] == end_id)
            behind += 1 + ends[0] if len(ends) else 0
        counted[first:behind] = True
    return counted


def _marked(message: Message) -> Message:
    """Around what is left when a template strips it."""
    content = message["content"]
    core = content.strip()
    if not core:
        return message
    begin = content.index(core)
    end = begin + len(core)
    return message | {"content": content[:begin] + _BEGIN + core + _END + content[end:]}


def _found(marked: str) -> tuple[list[tuple[int, int]], str]:
    """Places of the contents in the text without marks. Raises ConversationError."""
    contents, parts, length = [], [], 0
    before, *pieces = marked.split(_BEGIN)
    parts.append(before)
    length += len(before)
    for piece in pieces:
        content, mark, rest = piece.partition(_END)
        if not mark or _END in rest:
            raise ConversationError("the chat template cuts a content, or writes it twice in part")
        contents.append((length, length + len(content)))
        parts += [content, rest]
        length += len(content) + len(rest)
    text = "".join(parts)
    if _END in text:
        raise ConversationError("the chat template cuts a content")
    return contents, text


def _whole(text: str, core: tuple[int, int], message: Message) -> tuple[int, int]:
    """With the white space around it, where the template has left it."""
    begin, end = core
    before, _, after = message["content"].partition(text[begin:end])
    if text.endswith(before, 0, begin):
        begin -= len(before)
    return begin, end + len(after) if text.startswith(after, end) else end


def _behind(end: int, text: str, turn_end: str | None) -> int:
    is_ended = turn_end is not None and text.startswith(turn_end, end)
    return end + len(turn_end) if turn_end is not None and is_ended else end
