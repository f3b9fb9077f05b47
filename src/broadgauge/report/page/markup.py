"""How does text become HTML without ever becoming markup? All is escaped but what is built here."""

from collections.abc import Iterable
from html import escape

from broadgauge.report.words.printable import plain


class Html(str):
    """Markup that was built by `tag`; any other string is text and gets escaped."""

    __slots__ = ()


Content = str | Iterable[str]

_VOID = frozenset({"meta", "br", "col"})


def tag(name: str, /, *content: Content, **attributes: str | None) -> Html:
    """`tag("p", "a < b", class_="x")` → `<p class="x">a &lt; b</p>`. None leaves one out."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{pairs}>")
    return Html(f"<{name}{pairs}>{join(*content)}</{name}>")


def join(*content: Content) -> Html:
    """Several pieces after one another, text escaped."""
    return Html("".join(_safe(piece) for piece in content))


def _safe(piece: Content) -> str:
    if isinstance(piece, Html):
        return piece
    if isinstance(piece, str):
        return escape(plain(piece))
    return "".join(_safe(part) for part in piece)


def with_sub_lines(cell: str, *, class_: str = "sub") -> Html:
    """The first line of it, and the others below, smaller."""
    first, *more = cell.split("\n")
    return join(first, [tag("span", line, class_=class_) for line in more])


def table(
    head: Iterable[str], rows: Iterable[Iterable[Content]], *, class_: str | None = None
) -> Html:
    """A table whose cells know their column's title: on a phone each row becomes a card."""
    titles = list(head)
    body = (
        tag("tr", [_cell(index, titles[index], cell) for index, cell in enumerate(row)])
        for row in rows
    )
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", [tag("th", title, scope="col") for title in titles])),
            tag("tbody", list(body)),
            class_=class_,
        ),
        class_="scroll",
    )


def _cell(index: int, title: str, content: Content) -> Html:
    if index == 0:
        return tag("th", content, scope="row")
    return tag("td", content, data_title=title)
