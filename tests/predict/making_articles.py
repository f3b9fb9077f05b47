"""The articles' scores, worked out once for all tests that read them."""

import functools

from broadgauge.predict.articles.scores import ArticleScores, article_scores


@functools.cache
def articles_found() -> ArticleScores:
    """What `broadgauge validate` scores without a file."""
    return article_scores()
