"""Which tables has an article?"""

from broadgauge.catalog.article_claims import ArticleId
from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.predict.articles.table import ArticleTable
from broadgauge.predict.articles.tables_gpt2 import gpt2_tables
from broadgauge.predict.articles.tables_nebius import nebius_tables
from broadgauge.predict.articles.tables_openshift import granite_tables, lora_tables

_OF = {"000": granite_tables, "001": lora_tables, "003": gpt2_tables, "004": nebius_tables}


def article_tables(article: ArticleId, scores: ArticleScores) -> tuple[ArticleTable, ...]:
    """All tables of one article, every published figure with its prediction."""
    return tuple(_OF[article](articles(), scores))
