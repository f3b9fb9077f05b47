"""What is taken for a storage's properties where nobody measured them? Wide, each with its source.

A figure here is of no storage in particular: a run of a `kind: storage` workload replaces it.
"""

from broadgauge.predict.storage.description import KnownValue

NOMINAL_SPREAD_RATIO = 1.5
"""Of a stated rate. A class figure, not fitted: of the article's stated read rates two are met
within 1.25, and a third is missed by 2.7."""
LATENCY_S = KnownValue.around(
    1e-3, 10.0, "class of all storages: 0.1 ms of a disk to 10 ms of a store"
)
MEMORY_GBYTE_PER_S = KnownValue.around(
    4.5, 2.0, "measured: a mounted bucket's file, read again from the page cache by one stream"
)
LOAD_HOST_GBYTE_PER_S = KnownValue(
    value=1.17,
    low=0.36,
    high=5.0,
    source="24.4 GB in 20.9 s (catalog/articles.yaml, local disk); measured: torch.load 0.36; "
    "safetensors take next to nothing",
)
GATHER_GBYTE_PER_S = KnownValue(
    value=0.2,
    low=0.05,
    high=1.0,
    source="measured: dcp.save of 157 MB by 2 ranks to memory, 0.2 GB/s a rank; catalog/"
    "articles.yaml implies 0.05 to 0.07 (146 GB by 16 ranks in 139 to 177 s); serialising alone "
    "reaches 1",
)
STAGING_GBYTE_PER_S = KnownValue(
    value=1.0,
    low=0.3,
    high=10.0,
    source="measured: async_save of 157 MB by 2 ranks stalls 0.08 s; a pinned copy over PCIe "
    "carries 10 and more",
)
MANY_STREAMS = KnownValue(
    value=2.5,
    low=1.0,
    high=8.0,
    source="of a rate stated for one stream: the article's eight ranks of a node write 1.7 to 3.3 "
    "times that of one (catalog/articles.yaml, 73 to 146 GB a save)",
)
"""By how much a node's streams together carry more than the stated rate of one."""
