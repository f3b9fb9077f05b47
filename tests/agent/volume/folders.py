"""What is fetched in a test's own process, and the folder that it gets into."""

from pathlib import Path

from tests.agent.volume.pods import fetch_order

from broadgauge.agent.volume.fetching import fetch
from broadgauge.messages.prepare_order import DONE, FetchOrder, PrepareOrder


def fetched(folder: Path, source: str, **more: str | tuple[str, ...] | None) -> Path:
    """The folder that it is in. Raises FetchError."""
    part = fetch_order(source, **more)
    fetch(order_of(folder, part), part)
    return folder / "v/broadgauge/model-x"


def order_of(folder: Path, part: FetchOrder) -> PrepareOrder:
    return PrepareOrder(root=str(folder / "v/broadgauge"), maker="it", fetched=(part,))


def contents(folder: Path) -> dict[str, bytes]:
    """Of its files by path, without DONE."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != DONE)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
