"""Is there what speaks to a cluster? Rendering needs none of it, so it is not installed with us."""

from importlib.util import find_spec

from broadgauge.specs.errors import PlatformError


def check_extra() -> None:
    """Raises PlatformError."""
    if find_spec("httpx2") is None:
        raise PlatformError(
            "speaking to a cluster needs httpx2, which is not installed",
            hint="pip install 'broadgauge[kubernetes]'; `broadgauge render` needs none of it",
        )
