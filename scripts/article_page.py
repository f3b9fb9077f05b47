"""Writes docs/articles.md from the articles' rows: `python scripts/article_page.py`."""

from pathlib import Path

from broadgauge.report.articles.page import article_page

PAGE = Path(__file__).parents[1] / "docs" / "articles.md"

if __name__ == "__main__":
    PAGE.write_text(article_page(), encoding="utf-8")
