"""Which NCCL variables did the job itself print, as `env`, `export -p` or `set -x` do?

NCCL names a variable only where it reads it, so a misspelt one shows up nowhere else. A line counts
that holds nothing but the setting, behind what a launcher or `kubectl logs` puts before it: advice
in a sentence (`run with NCCL_DEBUG=INFO`) sets nothing.
"""

import re

_SETTING = re.compile(r"(?P<name>(?:TORCH_)?NCCL_[A-Z][A-Z0-9_]*)=(?P<value>\S*)")
_BEFORE = re.compile(
    r"export|declare|-x|\++|stdout|stderr|F|(?:[\[<(][^\s\[<(\])>]*[\])>])+:?|[\d.:/,TZ+-]+"
)
"""What may stand before it: a shell's words, a prefix in brackets, a time, a rank."""


def printed_variable(text: str) -> tuple[str, str] | None:
    """Name and value, unmasked; None: the line is no setting."""
    *before, last = text.split() or [""]
    match = _SETTING.fullmatch(last)
    if match is None or not all(_BEFORE.fullmatch(word) for word in before):
        return None
    return match["name"], match["value"].strip("\"'")
