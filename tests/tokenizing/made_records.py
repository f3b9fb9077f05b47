"""Writes records as lines of JSON, and asks for them to be prepared."""

import json
from pathlib import Path
from typing import Any

from broadgauge.tokenizing.request import PrepareRequest


def lines(path: Path, *records: Any) -> PrepareRequest:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return PrepareRequest(source=str(path))
