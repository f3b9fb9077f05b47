"""How are an experiment's comments and names written, whatever the machine or cluster says?"""

import re
import textwrap
from collections.abc import Iterator

from broadgauge.wording.printable import printable

_COLUMNS = 96


def slug(text: str) -> str:
    """What of it a name may hold, and short."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:40].strip("-.")


def comment(text: str, indent: int = 0) -> str:
    """On one line, whatever the text holds."""
    return f"{' ' * indent}# {' '.join(printable(text).split())}"


def wrapped(text: str, *, indent: int = 0, hanging: int = 0) -> Iterator[str]:
    """A comment of as many lines as it needs, whatever the text holds."""
    lines = textwrap.wrap(
        comment(text)[2:],
        _COLUMNS - indent,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (f"{' ' * indent}# {line}" for line in lines)
