"""What did the program print, where a container's runtime or a collector wrapped its line?

Source of the forms: Kubernetes' CRI, `2026-11-23T10:00:00.1Z stdout F words`, with P for F where
the line goes on in the next one (kubernetes/kubernetes pkg/kubelet/kuberuntime/logs/logs.go);
Docker's driver json-file, `{"log":"words\\n","stream":"stdout","time":"…"}`, without the `\\n`
where the line goes on; systemd's `journalctl -o json` has the words in MESSAGE, structured loggers
in message or msg.
"""

import json
import re

_CRI = re.compile(
    rb"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) (?P<stream>stdout|stderr) "
    rb"(?P<tag>[FP])(?::\S{0,40})? "
)
_DOCKER = b'{"log":"'
_DOCKER_END = b'\\n","'
_KEYS = ("log", "message", "msg", "MESSAGE", "textPayload")
_LEVELS = ("level", "severity", "levelname")
_BAD_LEVELS = ("error", "fatal", "critical", "panic")
_RAISED = ("exc_info", "exc_text", "exception", "stack_trace")
"""Where structured loggers put a traceback (python-json-logger, structlog)."""


def stream_of(line: bytes) -> bytes | None:
    """Which stream's line goes on in a next one? None: it ends here, or nobody wrapped it."""
    if line.startswith(_DOCKER):
        return None if _DOCKER_END in line else _DOCKER
    match = _CRI.match(line)
    return match["stream"] if match is not None and match["tag"] == b"P" else None


def is_wrapped(line: bytes) -> bool:
    """Has it a form that this module knows?"""
    return line.startswith(b"{") or _CRI.match(line) is not None


def unwrapped(line: bytes) -> bytes:
    """The program's words; of a line that nobody wrapped all of it."""
    if line.startswith(b"{"):
        return _of_json(line)
    match = _CRI.match(line)
    return line if match is None else line[match.end() :]


def _of_json(line: bytes) -> bytes:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(found, dict):
        return line
    words = next((found[key] for key in _KEYS if isinstance(found.get(key), str)), None)
    if words is None:
        return line
    level = next((found[key] for key in _LEVELS if isinstance(found.get(key), str)), "")
    before = "[ERROR] " if level.casefold() in _BAD_LEVELS else ""
    raised = (found[key] for key in _RAISED if isinstance(found.get(key), str))
    return "\n".join((before + words, *raised)).encode(errors="replace")
