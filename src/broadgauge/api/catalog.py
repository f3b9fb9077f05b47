"""What is known of GPUs, networks, nodes, models, storage and prices?"""

import os

from broadgauge.api.asking import path_of
from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.catalog import load_catalog as load


def load_catalog(*files: str | os.PathLike[str]) -> Catalog:
    """The shipped catalog, with entries of yours; `broadgauge catalog` in Python.

    files: catalog files whose entries are added, or replace shipped ones of the same name; of
    several the last one counts. Every entry says its source. `catalog.gpu(name)`, `.network(name)`,
    `.node(name)` and `.model(name)` find one by name or alias and raise InputError with what was
    meant; `catalog.gpus`, `.networks`, … have them all.

    Raises InputError where a file can't be read, ExperimentError (an InputError) with the place of
    what is wrong in it.

    Example: `broadgauge.load_catalog().gpu("h100-sxm").memory_bytes`
    """
    return load([path_of("catalog", file) for file in files])
