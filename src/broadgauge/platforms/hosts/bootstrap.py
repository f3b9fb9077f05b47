"""How does a program of the zip file start on a machine that has Python and nothing of ours?

One ssh: a few lines of Python are its argument; the zip file and what the program is to know come
on its standard input, so that no secret stands on a command line or in a file. The file is kept in
a folder of its own, which the program removes when it ends; a shell that waits for it does where
it was killed.
"""

import hashlib
import json
from typing import Any

from broadgauge.agent import bundle
from broadgauge.messages.waiting_limits import factor_variables, waiting_limit_s
from broadgauge.platforms.hosts.ssh import Finished, run
from broadgauge.specs.errors import PlatformError

OLDEST_PYTHON = (3, 10)
START_LIMIT_S = waiting_limit_s(90.0)
GUARD = '"$@"; code=$?; if [ -d "$0" ]; then sleep 2; rm -rf "$0"; fi; exit $code'
"""A killed program's ranks have a moment to end before their file is taken away."""
_TOO_OLD = "broadgauge-python-too-old"
FOLDER_WORD = "{folder}"
"""In what a program is to know: the folder of its zip file."""

REMOTE = f"""
import sys
if sys.version_info < {OLDEST_PYTHON}:
    sys.exit("{_TOO_OLD} " + sys.version.split()[0])
import hashlib, json, os, shutil, subprocess, tempfile
head = json.loads(sys.stdin.buffer.readline())
data = sys.stdin.buffer.read(head["size"])
if hashlib.sha256(data).hexdigest() != head["sha256"]:
    sys.exit("the zip file did not arrive whole")
folder = tempfile.mkdtemp(prefix="broadgauge-")
path = os.path.join(folder, "broadgauge.zip")
lives_on = head["lives_on"]
command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", path, head["program"]]
try:
    with open(path, "wb") as file:
        file.write(data)
    log = open(os.path.join(folder, "log"), "w+b")
    process = subprocess.Popen(["/bin/sh", "-c", {GUARD!r}, folder, *command] if lives_on else
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        env=dict(os.environ, **head["environment"]),
        start_new_session=lives_on, cwd=head["working_folder"] or os.path.expanduser("~"))
except OSError as error:
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit("%s: %s" % (error.filename or folder, error.strerror))
text = json.dumps(head["start"]).replace("{FOLDER_WORD}", folder)
process.stdin.write(text.encode() + b"\\n")
process.stdin.close()
line = process.stdout.readline()
if not line or not lives_on:
    code = process.wait()
    log.seek(0)
    words = log.read()[-4000:].decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    if not line:
        sys.exit(words or "it ended with exit code %d" % code)
sys.stdout.buffer.write(line)
"""


def start(
    host: str,
    python: str,
    program: str,
    what: Any,
    *,
    working_folder: str | None = None,
    lives_on: bool = False,
) -> Any:
    """Start a program of the zip file there; the object of its first line.

    `lives_on`: in a session of its own, after this ssh's end. Raises PlatformError.
    """
    data = bundle.build()
    head = {
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "program": program,
        "start": what,
        "working_folder": working_folder,
        "lives_on": lives_on,
        "environment": factor_variables(),
    }
    ended = run(
        host, (python, "-c", REMOTE), json.dumps(head).encode() + b"\n" + data, START_LIMIT_S
    )
    if ended.exit_code != 0:
        raise _refusal(host, python, program, ended)
    try:
        return json.loads(ended.output.splitlines()[-1])
    except (ValueError, IndexError):
        shown = ended.output[:200].decode(errors="replace")
        raise PlatformError(
            f"{host}: {program} said {shown!r} where one object was expected",
            hint=f"does a login there print something? `ssh {host} true` must print nothing",
        ) from None


def _refusal(host: str, python: str, program: str, ended: Finished) -> PlatformError:
    words = ended.errors.strip().splitlines() or [f"exit code {ended.exit_code}"]
    last = words[-1].strip()
    if last.startswith(_TOO_OLD):
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return PlatformError(
            f"{host}: {python} is Python {last.split()[-1]}, and {oldest} or newer is needed",
            hint="`python:` of this host, with the path of a newer one",
        )
    if ended.exit_code in (126, 127):
        return PlatformError(
            f"{host}: {python} can't be run: {last}",
            hint="`python:` of this host, with the path of the Python that has torch",
        )
    return PlatformError(f"{host}: {program} did not start: {last}")
