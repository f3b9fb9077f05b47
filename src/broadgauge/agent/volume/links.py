"""Is it whole, and under which name of the user's is it found, too? A link on the same volume.

A training's fixed path (`/mnt/storage/model/granite`) then holds whatever was asked for last.
"""

import os
from pathlib import Path

from broadgauge.agent.volume.telling import LastingError, say, who
from broadgauge.messages.prepare_order import DONE, AnyOrder, PrepareOrder


def check_link(order: PrepareOrder, part: AnyOrder) -> None:
    """Before anything is fetched: would it go where it may? Raises LastingError."""
    if part.link is None:
        return
    link = Path(part.link)
    if link.is_symlink():
        if not _is_ours(link, order):
            raise LastingError(
                f"{link} is a link to {link.readlink()}, which is not ours: remove it, or name "
                "another `to`"
            )
    elif link.exists():
        raise LastingError(
            f"{link} is there, and no link of ours: remove it or name another `to`; where it is "
            "what you need, leave it out of `kubernetes.prepare`"
        )


def make_link(order: PrepareOrder, part: AnyOrder) -> None:
    """At once for everybody: no reader finds none. Raises LastingError and OSError."""
    if part.link is None or is_linked(order, part):
        return
    check_link(order, part)
    link = Path(part.link)
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        fresh = link.with_name(f".{part.name}.link")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(order.link_target(part))
        if link.is_symlink():
            say(f"{link} was {link.readlink()} before")
        fresh.replace(link)
    except PermissionError as error:
        raise LastingError(f"{link}: {error.strerror} for {who()}") from None
    say(f"{link} is {order.content(part)}")


def is_done(place: Path) -> bool:
    """Was this folder made whole?"""
    return (place / DONE).is_file()


def rooms_of(place: Path) -> list[Path]:
    """All pods' that make what gets this folder. Raises OSError."""
    prefix = f".{place.name}.part-"
    try:
        return sorted(path for path in place.parent.iterdir() if path.name.startswith(prefix))
    except FileNotFoundError:
        return []


def is_linked(order: PrepareOrder, part: AnyOrder) -> bool:
    """Is it found under its name? Also where it needs none. Raises OSError."""
    if part.link is None:
        return True
    try:
        return str(Path(part.link).readlink()) == order.link_target(part)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        if Path(part.link).exists():  # no link at all
            return False
        raise


def _is_ours(link: Path, order: PrepareOrder) -> bool:
    target = os.path.normpath(link.parent / link.readlink())
    return target.startswith(f"{order.root}/")
