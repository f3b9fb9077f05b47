"""Which zip file does this program run from, and which version of us is that?"""

import hashlib
import sys
from pathlib import Path


def zip_file() -> Path | None:
    """The zip file that this program runs from; None: an installed package."""
    loader = getattr(sys.modules[__name__], "__loader__", None)
    archive = getattr(loader, "archive", None)
    return None if archive is None else Path(archive).absolute()


def version_of(archive: bytes) -> str:
    """The first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(archive).hexdigest()[:16]
