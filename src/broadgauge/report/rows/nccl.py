"""What did NCCL do in each case? Rows and matrices of ranks, for page and terminal."""

from dataclasses import dataclass

from broadgauge.analysis.model import Analysis, NcclTaken
from broadgauge.specs.records.nccl import NcclUse, NcclWay
from broadgauge.specs.units import show_time

NCCL_HEAD = ("case", "network", "over", "GPUDirect", "channels", "nodes seen", "NCCL", "init")
NCCL_HOW = (
    "By NCCL's own logs, of the last good trial; what was otherwise in others is said. Nodes seen: "
    "what NCCL takes for nodes. Init: the longest start of a communicator."
)
MOST_RANKS = 32
"""On a side of a matrix; a larger one is told by its ways' numbers."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayKind:
    """How one way is shown."""

    letter: str
    meaning: str


WAYS: dict[str, WayKind] = {
    "sockets": WayKind(letter="T", meaning="TCP"),
    "network": WayKind(letter="N", meaning="a NIC other than TCP's, through the host's memory"),
    "SHM": WayKind(letter="S", meaning="shared memory of the host"),
    "GDRDMA": WayKind(letter="G", meaning="GPUDirect RDMA, from the GPU's memory to the NIC"),
    "COLLNET": WayKind(letter="C", meaning="a switch that adds up"),
    "P2P": WayKind(letter="P", meaning="from GPU to GPU"),
    "NVLS": WayKind(letter="V", meaning="NVLink's switch adds up"),
}
"""The slowest first: what a pair with several of them is shown as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWays:
    """Which way from rank to rank; equal ones of several cases once."""

    labels: tuple[str, ...]
    """Of its cases."""
    num_ranks: int
    cells: dict[tuple[int, int], tuple[str, ...]]
    """(from, to) → its ways, the slowest first; without one: nothing is sent directly."""
    ways: tuple[NcclWay, ...]

    @property
    def is_drawn(self) -> bool:
        """Does it fit, and are all its pairs known?"""
        has_all = all(way.num_pairs == len(way.pairs) for way in self.ways)
        return 2 <= self.num_ranks <= MOST_RANKS and has_all and bool(self.cells)

    @property
    def legend(self) -> tuple[tuple[str, WayKind], ...]:
        """The ways that occur."""
        seen = {way.way for way in self.ways}
        return tuple((name, kind) for name, kind in WAYS.items() if name in seen)


def nccl_cases(analysis: Analysis) -> list[tuple[str, NcclTaken]]:
    """Labels of the cases of which something is known."""
    return [
        (case.label, case.nccl)
        for case in analysis.cases
        if case.nccl is not None and case.arm == "candidate"
    ]


def nccl_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """One row a case; a cell's further lines are its small print."""
    return [(label, *_row(taken)) for label, taken in nccl_cases(analysis)]


def _row(taken: NcclTaken) -> tuple[str, ...]:
    use = taken.use
    others = "".join(f"\n{words}" for words in taken.other_trials)
    return (
        f"{use.network or UNKNOWN}{others}",
        _over(use),
        gpudirect_words(use),
        "–" if use.num_channels is None else str(use.num_channels),
        "–" if use.num_nodes is None else str(use.num_nodes),
        use.version or UNKNOWN,
        "–" if use.init_s is None else show_time(use.init_s),
    )


def _over(use: NcclUse) -> str:
    """Adapters where it is not sockets that were used."""
    is_sockets = (use.network or "").casefold() == "socket"
    names = use.interfaces if is_sockets or not use.adapters else use.adapters
    return ", ".join(names) or "–"


def gpudirect_words(use: NcclUse) -> str:
    """On, off, unknown; nothing where no NIC is asked."""
    if use.num_nodes == 1 and use.way("GDRDMA") is None:
        return "–"
    if use.gpudirect is not None:
        return "on" if use.gpudirect else "off"
    direct, staged = use.way("GDRDMA"), use.way("network")
    if direct is not None and staged is not None:
        return f"{direct.num_pairs} of {direct.num_pairs + staged.num_pairs} pairs"
    is_sockets = (use.network or "").casefold() == "socket"
    return "–" if is_sockets else UNKNOWN


def way_counts(ways: tuple[NcclWay, ...]) -> str:
    """`P2P: 8 pairs of ranks, up to 16 channels; sockets: 2 pairs of ranks, 1 channel`."""
    return "; ".join(map(_count, ways))


def _count(way: NcclWay) -> str:
    if not way.num_pairs:
        return way.way
    pairs = "1 pair of ranks" if way.num_pairs == 1 else f"{way.num_pairs} pairs of ranks"
    if way.num_channels is None:
        return f"{way.way}: {pairs}"
    channels = "1 channel" if way.num_channels == 1 else f"up to {way.num_channels} channels"
    return f"{way.way}: {pairs}, {channels}"


def path_matrices(analysis: Analysis) -> tuple[RankWays, ...]:
    """Each different one once, in the order of the cases."""
    found: dict[tuple[object, ...], list[tuple[str, NcclUse]]] = {}
    for label, taken in nccl_cases(analysis):
        if taken.use.ways:
            kind = (taken.use.num_ranks, *((w.way, w.num_pairs, w.pairs) for w in taken.use.ways))
            found.setdefault(kind, []).append((label, taken.use))
    return tuple(map(_matrix, found.values()))


def _matrix(alike: list[tuple[str, NcclUse]]) -> RankWays:
    use = alike[0][1]
    cells: dict[tuple[int, int], tuple[str, ...]] = {}
    for name in WAYS:
        way = use.way(name)
        for pair in () if way is None else way.pairs:
            cells[pair] = (*cells.get(pair, ()), name)
    most = max((rank for pair in cells for rank in pair), default=-1) + 1
    return RankWays(
        labels=tuple(label for label, _ in alike),
        num_ranks=max(use.num_ranks or 0, most),
        cells=cells,
        ways=use.ways,
    )
