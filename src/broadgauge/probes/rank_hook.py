"""What is loaded into the Python processes of a user's command? On a signal, it writes stacks.

It is copied as `sitecustomize.py` into a folder that PYTHONPATH begins with, and runs with the
user's Python, whichever that is. Only ranks register the signal, and a `sitecustomize` of theirs
that this one hides is loaded after it.
"""

import contextlib
import os
import sys


def register() -> None:
    """Nothing is written, printed or opened again when the signal comes: faulthandler does it in C,
    also where the interpreter's lock is held."""
    folder, number = os.environ.get("BROADGAUGE_STACKS"), os.environ.get("BROADGAUGE_STACKS_SIGNAL")
    if not folder or not number or "LOCAL_RANK" not in os.environ:
        return
    import faulthandler

    path = os.path.join(folder, f"stacks.{os.getpid()}")  # noqa: PTH118  loads less
    file = open(path, "ab", buffering=0)  # noqa: SIM115, PTH123  for the signal, to the end
    faulthandler.register(int(number), file=file, all_threads=True)


def register_tracing() -> None:
    """In a traced launch alone its profiler's code is there."""
    if os.environ.get("BROADGAUGE_TRACE_FOLDER"):
        import broadgauge_trace_hook  # type: ignore[import-not-found]

        broadgauge_trace_hook.register()


def load_hidden() -> None:
    """The `sitecustomize` that Python would have loaded."""
    own = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  loads less
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != own]  # noqa: PTH100
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


if __name__ == "sitecustomize":
    with contextlib.suppress(ImportError, OSError, ValueError, RuntimeError):
        register()  # else a hang is told without this process's stack
    with contextlib.suppress(ImportError, KeyError, ValueError):
        register_tracing()  # else the traced launch tells that none of its processes has stepped
    load_hidden()
