"""Proves what manifests/fetch_urls.py shows of URLs, and which redirects it follows."""

import io
import urllib.request
from email.message import Message
from typing import Any

import pytest

from broadgauge.manifests import fetch_urls


@pytest.mark.parametrize(
    ("source", "to", "is_followed"),
    [
        ("https://h.example.com/a", "https://other.example.com/a", True),
        ("http://h.example.com/a", "https://h.example.com/a", True),
        ("http://h.example.com/a", "http://other.example.com/a", True),
        ("https://h.example.com/a", "HTTP://h.example.com/a?sig=SEKRIT", False),
        ("https://h.example.com/a", "ftp://ada:SEKRIT@h.example.com/a", False),
    ],
)
def test_redirect_keeps_what_is_encrypted_so(source: str, to: str, is_followed: bool) -> None:
    def follow() -> Any:
        request = urllib.request.Request(source)
        return fetch_urls._Redirects().redirect_request(
            request, io.BytesIO(), 302, "Found", Message(), to
        )

    if is_followed:
        assert follow().full_url == to
        return
    with pytest.raises(fetch_urls.LastingError, match="from https to") as refused:
        follow()
    assert "SEKRIT" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a:pw@h:80/x to http://b:pw@g/y?s=1", "http://h:80/x to http://g/y?***"),
        ("http://[::1]:8080/m@1.tar", "http://[::1]:8080/m@1.tar"),
        ("https://a:p/w@h/x", "https://***"),
        ("a" * 200_000, "a" * 200_000),
    ],
)
def test_urls_of_a_text_are_shown_without_credentials(text: str, shown: str) -> None:
    assert fetch_urls.shown(text) == shown
