"""What did NCCL say of itself in a trial? Read from its logs; None and empty: they don't say."""

from broadgauge.specs.base import StoredModel

MOST_PAIRS = 256
"""Pairs of ranks in one record, of all ways together."""


class NcclWay(StoredModel):
    """One way that bytes took from rank to rank."""

    way: str
    """`P2P`, `SHM`, `sockets`, `network` (a NIC that is not TCP's, through the host's memory),
    `GDRDMA` (the NIC reads and writes the GPU's memory), `COLLNET`, `NVLS`."""
    num_pairs: int
    pairs: tuple[tuple[int, int], ...] = ()
    """From, to: the first of them, where there are more than a record holds."""
    num_channels: int | None = None
    """The most of one pair."""
    line: str | None = None
    """The first that says so: `logs/b0.l0.rank0.nccl.log:41: Channel …`."""


class NcclUse(StoredModel):
    """All ranks of one launch together; of several communicators the largest."""

    version: str | None = None
    network: str | None = None
    """`IB`, `Socket`, `AWS Libfabric`; of several the one between nodes, `Socket` before others."""
    interfaces: tuple[str, ...] = ()
    """Of the socket network, as NCCL lists them on any node."""
    adapters: tuple[str, ...] = ()
    """Host channel adapters: `mlx5_0:1/RoCE`."""
    num_channels: int | None = None
    """Of collectives."""
    num_ranks: int | None = None
    num_nodes: int | None = None
    """What NCCL takes for nodes."""
    gpudirect: bool | None = None
    """Do NICs read and write the GPUs' memory between nodes? None also where pairs differ."""
    ways: tuple[NcclWay, ...] = ()
    init_s: float | None = None
    """The longest initialisation of a communicator."""
    bootstrap_s: float | None = None
    notes: tuple[str, ...] = ()
    """What was not read, and why."""

    def way(self, name: str) -> NcclWay | None:
        """None: no pair went this way, as far as known."""
        return next((way for way in self.ways if way.way == name), None)
