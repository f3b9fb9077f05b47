"""Which text is a secret by its form alone? Tokens as their makers write them, and private keys.

Source of the forms: the documentation of their makers (Hugging Face `hf_`, GitHub `ghp_` and
others, AWS `AKIA`, OpenAI `sk-`, Slack `xox`, GitLab `glpat-`, NVIDIA NGC `nvapi-`); RFC 7519 (JSON
Web Token); RFC 7468 (private keys).
"""

import re

TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|AKIA[A-Z0-9]{12,}|"
    r"sk-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{8,}|glpat-[A-Za-z0-9_-]{12,}|"
    r"nvapi-[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)"
)
"""What is masked: rather too much."""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----")
_SURE_CHARACTERS = 24
_SURE_WITH_A_DIGIT = 20
"""Hugging Face's tokens have 37 characters, GitHub's 40, AWS' 20; `hf_tokenizer` is a variable."""


def may_hold_token(text: str) -> bool:
    """Has it what one of the tokens begins with? Looking for words costs less than a pattern."""
    return (
        "hf_" in text
        or "gh" in text
        or "github_" in text
        or "AKIA" in text
        or "sk-" in text
        or "xox" in text
    ) or ("glpat-" in text or "nvapi-" in text or "eyJ" in text)


def holds_token(text: str) -> bool:
    """Is a token or a private key in it, for sure? For what is refused, where a mask is too much:
    names of variables are let through."""
    if "PRIVATE KEY-----" in text and _PRIVATE_KEY.search(text):
        return True
    return may_hold_token(text) and any(map(_is_sure, TOKEN.finditer(text)))


def _is_sure(match: re.Match[str]) -> bool:
    found = match[0]
    most = _SURE_WITH_A_DIGIT if any(each.isdigit() for each in found) else _SURE_CHARACTERS
    return len(found) >= most
