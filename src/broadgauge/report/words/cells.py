"""What stands in one cell of the closing table?"""

from dataclasses import dataclass

from broadgauge.report.words.quantities import interval, launches_words, show, spread
from broadgauge.specs.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    main: str
    sub: str = ""
    """The spread; of a network the workload and its shape."""
    below: str = ""
    """What the figure is, or is a share of: up to two lines below the spread, or a column."""
    detail: str = ""
    """The interval and how it was obtained; for a pointer to rest on."""

    @property
    def under(self) -> str:
        """All lines below the figure."""
        return "\n".join(filter(None, (self.sub, self.below)))


EMPTY = Cell(main="–")


def estimate_cell(name: str, estimate: Estimate | None, like: float | None = None) -> Cell | None:
    """A figure with its spread below; None where it was not measured. `like`: see `show`."""
    if estimate is None:
        return None
    detail = f"{interval(name, estimate)}; {estimate.method}, {launches_words(estimate.launches)}"
    main = show(name, estimate.value, like=like)
    return Cell(main=main, sub=spread(name, estimate, like), detail=detail)
