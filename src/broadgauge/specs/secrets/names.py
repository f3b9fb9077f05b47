"""Which variables hold a secret? By their names, and by the form of a URL; nothing is guessed.

What else is one is declared in the experiment: `MY_PASS: {from_environment: true}`.
"""

import re
from urllib.parse import unquote

MASK = "***"

NAMES = frozenset(
    {
        *("AWS_ACCESS_KEY_ID", "AZURE_STORAGE_KEY", "KAGGLE_KEY", "MYSQL_PWD", "PGPASSWORD"),
        *("AZURE_DEVOPS_EXT_PAT", "GH_PAT", "GITHUB_PAT"),
    }
)
"""Those that no ending tells."""
ENDINGS = (
    *("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "COOKIE"),
    *("API_KEY", "APIKEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY", "ENCRYPTION_KEY"),
    *("ACCOUNT_KEY", "APPLICATION_KEY", "SIGNING_KEY", "SSH_KEY", "CONNECTION_STRING"),
)
"""Whole words at the end: HF_TOKEN, WANDB_API_KEY, AWS_SECRET_ACCESS_KEY, PASSWORD. A path to a
secret (`…_TOKEN_FILE`, GOOGLE_APPLICATION_CREDENTIALS) is none."""
_OF_A_MODEL = frozenset(
    {
        *("BOS", "CLS", "EOD", "EOS", "EOT", "MASK", "PAD", "SEP", "SPECIAL", "UNK"),
        *("AUDIO", "IMAGE", "VIDEO", "FIRST", "LAST", "NEXT", "START", "STOP", "END"),
        *("BY", "MAX", "MIN", "NUM", "PER"),
    }
)
"""What stands before `_TOKEN` where a model's token is meant: PAD_TOKEN, BYTES_PER_TOKEN."""
_ENDS_LIKE_A_SECRET = re.compile(rf"(?:.*_)?(?:{'|'.join(ENDINGS)})")
_USER_PART = re.compile(r"([a-z][a-z0-9+.-]{0,30})://([^\s/?#]+)@", re.IGNORECASE)
"""Source: RFC 3986, 3.2.1, userinfo. A password may hold an `@` that should be escaped."""
_PARAMETER = re.compile(r"([?&;#])([^\s=&;#?]{1,100})=([^\s&;#$]+)")
"""Of a URL's query or fragment; a value that is a shell's variable is none. Source: RFC 3986, 3.4
and 3.5."""
_SIGNING = re.compile(r"(?:.*_)?(?:SIG|SIGNATURE|CREDENTIAL|KEY|AUTH|AUTHORIZATION|JWT)")
"""X-Amz-Signature and X-Amz-Credential, X-Goog-Signature, sig of a shared access signature. Source:
AWS, "Authenticating Requests: Using Query Parameters"; Google Cloud, "Signed URLs"; Azure, "Create
a service SAS"."""
_WEB = ("http", "https")


def is_secret(name: str) -> bool:
    """`HF_TOKEN` and `wandb_api_key` are; `TOKENIZERS_PARALLELISM` and `PAD_TOKEN` are not."""
    upper = name.upper()
    if upper in NAMES:
        return True
    if _ENDS_LIKE_A_SECRET.fullmatch(upper) is None:
        return False
    *_, before, last = ("", "", *upper.split("_"))
    return last != "TOKEN" or before not in _OF_A_MODEL


def without_credentials(text: str) -> str:
    """`https://me:pass@host/a` → `https://***@host/a`; text without credentials as it is.

    A user alone is a credential on the web, where it may be a token, and none in `ssh://git@host`.
    """
    return _USER_PART.sub(_masked_user, text)


def credentials_in(text: str) -> tuple[str, ...]:
    """The user parts of its URLs that are masked, and the passwords in them."""
    parts = [match[2] for match in _USER_PART.finditer(text) if _is_credential(match)]
    passwords = [part.partition(":")[2] for part in parts]
    return tuple(part for part in (*parts, *passwords) if part)


def _masked_user(match: re.Match[str]) -> str:
    return f"{match[1]}://{MASK}@" if _is_credential(match) else match[0]


def _is_credential(match: re.Match[str]) -> bool:
    return ":" in match[2] or match[1].lower() in _WEB


def url_secrets(text: str) -> tuple[str, ...]:
    """What in its URLs is secret: a user or password, the names of parameters that sign or open."""
    users = ("user or password",) if without_credentials(text) != text else ()
    if "://" not in text:
        return users
    names = (match[2] for match in _PARAMETER.finditer(text) if _opens(match[2]))
    return tuple(dict.fromkeys((*users, *names)))


def _opens(parameter: str) -> bool:
    name = unquote(parameter).upper().replace("-", "_")
    return is_secret(name) or _SIGNING.fullmatch(name) is not None
