"""How is a program run on another machine, over the user's own ssh?

Keys, user names, jump hosts and known hosts are as the user's ssh has them; nothing is asked for,
and no check of a host's key is turned off. Errors are in ssh's own words.
"""

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.specs.errors import PlatformError

OPTIONS = (
    *("-T", "-x", "-o", "BatchMode=yes"),
    *("-o", f"ConnectTimeout={max(1, round(waiting_limit_s(10)))}"),
    *("-o", "ServerAliveInterval=15"),
    *("-o", f"ServerAliveCountMax={max(1, round(waiting_limit_s(4)))}"),
)
"""No terminal, no X11, no question; a machine that is gone is seen after a minute."""
SSH_FAILED = 255
"""What ssh ends with where it itself failed. Source: ssh(1), EXIT STATUS."""
_SHOWN_LINES = 2
_HINTS = (
    (
        "host key verification failed",
        "its key is not the one you know: ask who runs it, then `ssh-keygen -R` and log in once; "
        "or it is unknown here: log in once by hand",
    ),
    ("permission denied", "`ssh {host} true` must work without a question: add your key there"),
    ("could not resolve", "the name as in your ~/.ssh/config, or an address"),
    ("timed out", "is the machine up, and its port 22 reachable from here?"),
    ("no route to host", "is the machine up, and in a network that is reachable from here?"),
    ("connection refused", "does sshd run there? `ssh {host} true` must work"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a remote program left."""

    exit_code: int
    output: bytes
    errors: str


def ssh_command(host: str, *words: str) -> list[str]:
    """What this machine runs to have `words` run there."""
    return ["ssh", *OPTIONS, "--", host, shlex.join(words)]


def run(host: str, words: Sequence[str], data: bytes, timeout_s: float) -> Finished:
    """Run a program there with this input. Raises PlatformError where ssh itself fails."""
    try:
        ended = subprocess.run(
            ssh_command(host, *words),
            input=data,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,  # Ctrl-C is the tool's: it ends what it has started there
        )
    except FileNotFoundError:
        raise PlatformError("there is no `ssh` here", hint="install OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise PlatformError(
            f"{host}: nothing came back within {timeout_s:g} s",
            hint=f"does `ssh {host} true` answer?",
        ) from None
    errors = ended.stderr.decode(errors="replace")
    if ended.returncode == SSH_FAILED:
        raise ssh_error(host, errors)
    return Finished(exit_code=ended.returncode, output=ended.stdout, errors=errors)


def ssh_error(host: str, errors: str) -> PlatformError:
    """In ssh's words, its banners left out."""
    lines = [line.strip() for line in errors.splitlines()]
    told = [line for line in lines if line and not line.startswith("@")]
    words = "; ".join(told[-_SHOWN_LINES:]) or "ssh ended without a word"
    folded = words.casefold()
    hint = next((hint for sign, hint in _HINTS if sign in folded), "does `ssh {host} true` work?")
    return PlatformError(f"{host} can't be reached over ssh: {words}", hint=hint.format(host=host))
