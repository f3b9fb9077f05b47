"""Which word was meant?"""

import difflib
from collections.abc import Iterable


def did_you_mean(seen: str, known: Iterable[str]) -> str | None:
    """A hint with the nearest known word, or with all of them when they are few."""
    words = sorted(set(known))
    near = difflib.get_close_matches(seen, words, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"known: {', '.join(words)}" if words and len(words) <= 16 else None
