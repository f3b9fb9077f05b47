"""What may not be kept of a line: values of variables that look like secrets, and tokens."""

import re

from broadgauge.specs.secrets.names import MASK, is_secret, without_credentials
from broadgauge.specs.secrets.token_forms import TOKEN, may_hold_token

_NAMED = re.compile(
    r"\b(?P<name>[A-Za-z][A-Za-z0-9_-]{2,60})"
    r"(?:[\"']?\s{0,3}(?:=|:|set by environment to|set to)\s{0,3})"
)
_OPTION = re.compile(r"--(?P<name>[A-Za-z][A-Za-z0-9_-]{2,60})\s{1,3}(?!-)")
_VALUE = re.compile(r"\"[^\"]*\"?|'[^']*'?|(?:(?:Bearer|Basic)\s)?[^\s\"',;]+")
_BEARER = re.compile(r"\b(?P<to>Bearer\s{1,3})[A-Za-z0-9._~+/-]{8,}=*")
MOST_KEPT = 400
"""Characters of a line."""
_MOST_LOOKED_AT = 4096


def kept(text: str) -> str:
    """What may be kept of a line as evidence."""
    text = text.strip()
    if len(text) > _MOST_LOOKED_AT:  # a token may have been cut
        text = text[:_MOST_LOOKED_AT].rpartition(" ")[0]
    return masked(text)[:MOST_KEPT]


def masked(text: str) -> str:
    """A line without what nobody else may read."""
    if "://" in text:
        text = without_credentials(text)
    if may_hold_token(text):
        text = TOKEN.sub(MASK, text)
    if not _may_name_secret(text.lower().replace("-", "_")):
        return text
    text = _BEARER.sub(rf"\g<to>{MASK}", text)
    return _without_values(_NAMED, _without_values(_OPTION, text))


def _may_name_secret(small: str) -> bool:
    """Has it a part of a secret's name? `small`: in small letters."""
    return (
        ("key" in small or "token" in small or "secret" in small or "pass" in small)
        or ("cookie" in small or "pwd" in small or "_pat" in small or "connection_" in small)
        or ("bearer" in small or "authorization" in small)
    )


def masked_variable(name: str, value: str) -> str:
    """The value, or a mask where it is one by its name or its form."""
    return MASK if is_secret(name) else masked(value)


def _without_values(before: re.Pattern[str], text: str) -> str:
    """What follows such a name, masked where the name is a secret's."""
    pieces: list[str] = []
    end = 0
    for match in before.finditer(text):
        if match.start() < end or not _names_secret(match["name"]):
            continue
        value = _VALUE.match(text, match.end())
        if value is None:
            continue
        quote = value[0][0] if value[0][0] in "\"'" else ""
        pieces += [text[end : value.start()], quote, MASK, quote]
        end = value.end()
    return "".join((*pieces, text[end:])) if pieces else text


def _names_secret(name: str) -> bool:
    return name.lower() == "authorization" or is_secret(name.replace("-", "_"))
