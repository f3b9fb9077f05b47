"""The script that makes a report's charts answer to a pointer: Vega, out of vl-convert's own copy.

To bundle it takes more than a second and always gives the same, so it is kept in the user's cache
folder, `$XDG_CACHE_HOME/broadgauge` or `~/.cache/broadgauge`. What is kept there is read only if it
is whole; where nothing can be kept, the script is made each time.
"""

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

_SNIPPET = """
import {{ View, parse, Error as OnlyErrors }} from "/npm/vega@{version}/+esm";
window.broadgaugeVega = {{ View, parse, OnlyErrors }};
"""
"""The name is that of the copy inside vl-convert. The `vega` that its own snippets may use is null
(vl-convert 1.9.0 imports a default that Vega 6 no longer has), and `vegaEmbed` drags in Vega-Lite,
320 KB more."""
_KNOWN_SERIES = "1.9."
"""Of vl-convert. Another may name its copy otherwise, and then panics: the page does without."""


@cache
def runtime() -> str | None:
    """The Vega runtime as one script, safe inside a script element; None where it can't be had."""
    maker = version("vl-convert-python")
    if not maker.startswith(_KNOWN_SERIES):
        return None
    path = _kept_in(maker)
    kept = _read(path)
    if kept is not None:
        return kept
    script = _bundle()
    # Nobody needs to know that it will take as long next time.
    with contextlib.suppress(OSError):
        _keep(path, script)
    return script


def _bundle() -> str:
    import vl_convert

    snippet = _SNIPPET.format(version=vl_convert.get_vega_version())
    script: str = vl_convert.javascript_bundle(snippet)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _kept_in(maker: str) -> Path:
    """The file of this version's script. A path that is not absolute is none (XDG)."""
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    folder = told if told.is_absolute() else Path(os.path.expanduser("~/.cache"))  # noqa: PTH111
    made_from = hashlib.sha256(_SNIPPET.encode()).hexdigest()[:8]
    return folder / "broadgauge" / f"vega-{maker}-{made_from}.js"


def _read(path: Path) -> str | None:
    """What is there, if it is what its first line says: half a file, or another one, is none."""
    try:
        digest, _, script = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return script.decode() if digest == _digest_line(script) else None


def _keep(path: Path, script: str) -> None:
    """Whole or not at all, also where two do it at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            data = script.encode()
            file.write(_digest_line(data) + b"\n" + data)
        os.replace(name, path)  # noqa: PTH105
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _digest_line(script: bytes) -> bytes:
    return f"// SHA-256 {hashlib.sha256(script).hexdigest()}".encode()
