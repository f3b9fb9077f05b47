"""Is a planted value found wherever it may stand, and in whatever form?"""

import base64
import gzip
import io
import zipfile

import pytest
from tests.kubernetes.planted import BY_SECRET, places

PLAIN = f"token: {BY_SECRET}\n".encode()


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        gzip.compress(PLAIN),
        zipped(gzip.compress(PLAIN)),
        *(b'{"a": "' + base64.b64encode(b"." * n + PLAIN) + b'"}' for n in range(3)),
        base64.b64encode(BY_SECRET.encode()),
    ],
    ids=["as it is", "gzip", "zip", "base64 0", "base64 1", "base64 2", "base64 alone"],
)
def test_a_planted_value_is_found_in_each_form(content: bytes) -> None:
    (found,) = places([("here", content)])
    assert found.startswith("here")


def test_what_only_resembles_it_is_none() -> None:
    assert places([("here", BY_SECRET[:-1].encode())]) == []
