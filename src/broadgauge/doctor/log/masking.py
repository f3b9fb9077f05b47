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
    r"\b(?P<name>[A-Za-z][A-Za-z0-9_-]{2,60})"
    r"(?P<to>[\"']?\s{0,3}(?:=|:|set by environment to|set to)\s{0,3})"
    r"(?P<value>\"[^\"]*\"?|'[^']*'?|(?:(?:Bearer|Basic)\s)?[^\s\"',;]+)"
)
_OPTION = re.compile(r"--(?P<name>[A-Za-z][A-Za-z0-9_-]{2,60})(?P<to>\s)(?P<value>[^\s\"',;-]\S*)")
_BEARER = re.compile(r"\b(?P<to>Bearer\s{1,3})[A-Za-z0-9._~+/-]{8,}=*")
_MAY_ASSIGN = re.compile(
    r"key|token|secret|pass|cookie|pwd|pat\b|connection|bearer|authorization", re.IGNORECASE
)
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
    text = _TOKEN.sub(MASK, without_credentials(text))
    if _MAY_ASSIGN.search(text) is None:
        return text
    text = _OPTION.sub(_masked_value, _BEARER.sub(rf"\g<to>{MASK}", text))
    return _ASSIGNED.sub(_masked_value, text)


def masked_variable(name: str, value: str) -> str:
    """The value, or a mask where it is one by its name or its form."""
    return MASK if is_secret(name) else masked(value)


def _masked_value(match: re.Match[str]) -> str:
    name = match["name"].replace("-", "_")
    if not is_secret(name) and name.lower() != "authorization":
        return match[0]
    before = match[0][: match.start("value") - match.start()]
    quote = match["value"][0] if match["value"][0] in "\"'" else ""
    return f"{before}{quote}{MASK}{quote}"
