"""Where does a path lie that somebody else has written? Inside of its folder, or nowhere."""

from pathlib import Path, PurePosixPath

from broadgauge.agent.volume.telling import LastingError


def path_inside(folder: Path, name: str, what: str) -> Path:
    """`name` below `folder`, which holds no links. Raises LastingError."""
    parts = PurePosixPath(name)
    if not parts.parts or parts.is_absolute() or ".." in parts.parts or "\0" in name:
        raise LastingError(f"{what} {name!r} does not lie below its folder: nothing of it is kept")
    return folder.joinpath(parts)
