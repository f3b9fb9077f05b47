"""How does a figure stand in a table of the page?"""

from broadgauge.report.page.markup import Content, join, tag
from broadgauge.report.words.quantities import show, spread
from broadgauge.specs.estimate import Estimate


def estimate_content(name: str, estimate: Estimate | None) -> Content:
    """The figure with its spread; a dash where it was not measured."""
    if estimate is None:
        return "–"
    return join(show(name, estimate.value), tag("span", spread(name, estimate), class_="sub"))
