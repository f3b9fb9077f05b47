"""What is paid by the hour, and how much is to be trained? For dollars beside what was measured."""

from typing import Self

from pydantic import Field, model_validator

from broadgauge.specs.base import Name, Spec
from broadgauge.specs.units import TokenCount

MOST_USD_PER_HOUR = 1e6
"""Of a GPU or a node: more is a mistake."""


class Cost(Spec):
    """One price, and perhaps the tokens of a whole training."""

    usd_per_gpu_hour: float | None = Field(default=None, ge=0, le=MOST_USD_PER_HOUR)
    """US dollars that an hour of one GPU costs, with its share of the rest."""
    usd_per_node_hour: float | None = Field(default=None, ge=0, le=MOST_USD_PER_HOUR)
    """US dollars that an hour of a whole node costs, whatever of it is used."""
    node: Name | None = None
    """A server or cloud instance of the catalog, whose price is taken: `p5.48xlarge`."""
    tokens: TokenCount | None = None
    """Tokens of a whole training, whose days and dollars are shown: `300B`."""

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        prices = (self.usd_per_gpu_hour, self.usd_per_node_hour, self.node)
        if sum(price is not None for price in prices) > 1:
            raise ValueError(
                "one price: `usd_per_gpu_hour`, `usd_per_node_hour`, or that of a known `node`"
            )
        return self

    @property
    def has_price(self) -> bool:
        """Or is it for the catalog to say?"""
        return (self.usd_per_gpu_hour, self.usd_per_node_hour, self.node) != (None, None, None)
