"""How does a value show itself in a notebook? As HTML, and as text where there is no HTML.

Both are drawn by report/. The style is in the value's own element and leaves the notebook's as it
is; colours go with light and dark themes alike.
"""

import io
from abc import abstractmethod
from collections.abc import Callable, Collection

from rich.console import Console

from broadgauge.report.page.markup import Html, join, tag

TEXT_COLUMNS = 100
"""Of the text beside the HTML: a notebook has no terminal's width."""

_STYLE = Html(
    ".broadgauge{max-width:1080px;font-size:13px;line-height:1.45;text-align:left}"
    ".broadgauge p{margin:.3em 0}"
    ".broadgauge .title{font-size:1.2em;font-weight:600}"
    ".broadgauge .headline{font-size:1.1em}"
    ".broadgauge .faint,.broadgauge .sub{opacity:.7}"
    ".broadgauge .scroll{overflow-x:auto}"
    ".broadgauge h2{font-size:1.1em;margin:.8em 0 .2em}"
    ".broadgauge table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0;"
    "font-size:inherit}"
    ".broadgauge th,.broadgauge td{text-align:right;vertical-align:top;padding:.25em .7em;"
    "border:0;border-bottom:1px solid rgba(128,128,128,.35);white-space:nowrap;"
    "background:transparent}"
    ".broadgauge tr>:first-child,.broadgauge table.text td,.broadgauge table.text th"
    "{text-align:left}"
    ".broadgauge .sub{display:block;font-size:.9em;font-weight:400}"
    ".broadgauge .badge{padding:0 .55em;border-radius:1em;font-weight:600;white-space:nowrap;"
    "background:#eceef1;color:#4a5260}"
    ".broadgauge .network-bound{background:#fdf0dc;color:#8a4b00}"
    ".broadgauge .host-bound{background:#f5eafa;color:#6b2a8c}"
    ".broadgauge .compute-bound{background:#e5f4ea;color:#1c6537}"
    ".broadgauge .failed{background:#fbe7e5;color:#8f1d16}"
    ".broadgauge .disturbed{background:#fdf0dc;color:#8a4b00;padding:.3em .7em;border-radius:6px}"
    ".broadgauge ul{margin:.3em 0;padding-left:1.2em}"
    ".broadgauge pre{white-space:pre;overflow-x:auto;background:transparent;color:inherit;"
    "font-size:12px;line-height:1.35}"
)


class Displayed:
    """A value that a notebook shows as HTML, and IPython in a terminal and `print` as text."""

    __slots__ = ()

    @abstractmethod
    def _html(self) -> Html:
        """What stands inside the value's element."""

    @abstractmethod
    def _plain(self) -> str:
        """The same as text."""

    def __str__(self) -> str:
        """`print` shows it in a script as a notebook does."""
        return self._plain()

    def _repr_html_(self) -> str:
        return tag("div", tag("style", _STYLE), self._html(), class_="broadgauge")

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """By media type, as notebooks ask for it."""
        made: dict[str, Callable[[], str]] = {
            "text/plain": self._plain,
            "text/html": self._repr_html_,
        }
        wanted = [kind for kind in made if include is None or kind in include]
        return {kind: made[kind]() for kind in wanted if kind not in (exclude or ())}


def plain_text(print_to: Callable[[Console], None]) -> str:
    """What a command would print, without colours."""
    text = io.StringIO()
    # In a notebook rich would display what it prints, whatever its file is.
    console = Console(
        file=text, width=TEXT_COLUMNS, highlight=False, color_system=None, force_jupyter=False
    )
    print_to(console)
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "\n".join(lines).strip("\n")


def preformatted(text: str) -> Html:
    """Text whose columns stand under each other."""
    return tag("pre", text)


def listed(lines: Collection[str]) -> Html:
    """Notes below a table."""
    return join(tag("ul", [tag("li", line) for line in lines], class_="faint")) if lines else Html()
