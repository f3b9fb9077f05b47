"""What may not be kept of a line: values of variables that look like secrets, and tokens.

Source of the tokens' forms: the documentation of their makers (Hugging Face `hf_`, GitHub `ghp_`
and others, AWS `AKIA`, OpenAI `sk-`, Slack `xox`, GitLab `glpat-`, NVIDIA NGC `nvapi-`).
"""

import re

from broadgauge.specs.secret_names import MASK, is_secret, without_credentials

_TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|AKIA[A-Z0-9]{12,}|"
    r"sk-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{8,}|glpat-[A-Za-z0-9_-]{12,}|"
    r"nvapi-[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)"
)
_ASSIGNED = re.compile(
    r"\b(?P<name>[A-Za-z][A-Za-z0-9_]{2,60})(?P<to>\s{0,3}(?:=|:|set by environment to)\s{0,3})"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"',;]+)"
)
_MAY_ASSIGN = re.compile(r"key|token|secret|pass|cookie|pwd|pat\b|connection", re.IGNORECASE)


def masked(text: str) -> str:
    """A line without what nobody else may read."""
    text = _TOKEN.sub(MASK, without_credentials(text))
    if _MAY_ASSIGN.search(text) is None:
        return text
    return _ASSIGNED.sub(_masked_value, text)


def masked_variable(name: str, value: str) -> str:
    """The value, or a mask where it is one by its name or its form."""
    return MASK if is_secret(name) else _TOKEN.sub(MASK, without_credentials(value))


def _masked_value(match: re.Match[str]) -> str:
    if not is_secret(match["name"]):
        return match[0]
    return f"{match['name']}{match['to']}{match['quote']}{MASK}"
