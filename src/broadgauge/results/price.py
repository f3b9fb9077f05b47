"""What does an hour of a GPU or a node cost, and who says so?"""

from dataclasses import dataclass

from broadgauge.specs.cost import Cost

NO_GPU = (
    "the price is a GPU's, and CPUs compute here; a node's counts: --usd-per-node-hour, or "
    "`usd_per_node_hour` of the experiment's `cost`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Of an hour, and who says so."""

    usd_per_gpu_hour: float | None = None
    usd_per_node_hour: float | None = None
    """Either of the two."""
    words: str
    """`$2.95 for a GPU (h100-sxm) and hour (nebius-h100, 2025-10-22)`."""

    def usd_per_hour(self, *, num_nodes: int, num_gpus: int) -> float:
        """Of so many together."""
        if self.usd_per_node_hour is not None:
            return self.usd_per_node_hour * num_nodes
        return (self.usd_per_gpu_hour or 0.0) * num_gpus


def said_price(said: Cost, whose: str, *, is_gpu: bool) -> Price | str | None:
    """The one price of `said`. None: it has none, or is of a node that has none any longer; a text:
    why it can't be that of ranks which compute on GPUs or, else, on CPUs.

    Raises InputError for a node that the catalog has no longer.
    """
    if said.usd_per_node_hour is not None:
        words = f"${said.usd_per_node_hour:.4g} for a node and hour ({whose})"
        return Price(usd_per_node_hour=said.usd_per_node_hour, words=words)
    if not said.has_price:
        return None
    if not is_gpu:
        return NO_GPU
    if said.usd_per_gpu_hour is not None:
        words = f"${said.usd_per_gpu_hour:.4g} for a GPU and hour ({whose})"
        return Price(usd_per_gpu_hour=said.usd_per_gpu_hour, words=words)
    return catalog_price((), said.node)


def catalog_price(names: tuple[str, ...], node: str | None) -> Price | None:
    """Of a node's GPU, else of the one kind of GPU that computed; None: it is not known.

    Raises InputError for a node that the catalog has no longer.
    """
    if node is None and len(names) != 1:
        return None
    # Here, since most runs have no GPU, and the catalog takes a tenth of a second.
    from broadgauge.catalog.catalog import shipped_catalog
    from broadgauge.catalog.gpus import find_gpu

    catalog = shipped_catalog()
    if node is not None:
        entry = catalog.node(node)
        found = catalog.gpu_price(entry.gpu, entry.name)
        if found is None or found.price.node != entry.name:
            return None
        which, why = f"of {entry.name}", ""
    else:
        gpu = find_gpu(names[0])
        found = None if gpu is None else catalog.gpu_price(gpu.name)
        if gpu is None or found is None:
            return None
        which, why = f"({gpu.name})", ", the lowest known"
    usd = found.price_usd_per_hour
    date = found.price.date or "no date"
    words = f"${usd:.4g} for a GPU {which} and hour ({found.price.name}, {date}{why})"
    return Price(usd_per_gpu_hour=usd, words=words)
