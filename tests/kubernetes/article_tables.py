"""Tables of a report's page, as rows of cells."""

from html.parser import HTMLParser


class Tables(HTMLParser):
    """Rows of cells of each table, a cell as its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[list[list[list[str]]]] = []
        self._is_in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "table":
            self.found.append([])
        elif tag == "tr":
            self.found[-1].append([])
        elif tag in ("td", "th"):
            self.found[-1][-1].append([])
            self._is_in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._is_in_cell = self._is_in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._is_in_cell:
            self.found[-1][-1][-1].append(data.replace("\xa0", " "))

    def headed(self, first: str) -> list[list[list[str]]]:
        """Rows of the first table whose first column is called so, without its titles."""
        return next(table[1:] for table in self.found if table[0][0] == [first])
