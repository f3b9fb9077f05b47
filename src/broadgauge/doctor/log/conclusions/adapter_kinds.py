"""What is an adapter, by its name? NCCL calls all IB or RoCE that has verbs."""

from collections.abc import Iterable
from dataclasses import dataclass

from broadgauge.doctor.log.facts import Adapter
from broadgauge.specs.units import show_rate
from broadgauge.wording.listing import listed

_MOST_ADAPTERS = 4
OMNI_PATH = "Omni-Path"
EFA = "AWS EFA without its plugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterKind:
    """Adapters whose driver names them so."""

    prefixes: tuple[str, ...]
    words: str
    fix: str | None = None
    is_software: bool = False


_KINDS = (
    AdapterKind(
        prefixes=("hfi1", "opa"),
        words=OMNI_PATH,
        fix="GPUDirect needs the hfi1 driver built with it; the PSM2 or OPX plugin may be faster",
    ),
    AdapterKind(
        prefixes=("rxe",),
        words="software RoCE",
        fix="the processors move each byte: exclude it, NCCL_IB_HCA=^rxe, and compare with sockets",
        is_software=True,
    ),
    AdapterKind(
        prefixes=("siw",),
        words="software iWARP",
        fix="the processors move each byte: exclude it, NCCL_IB_HCA=^siw, and compare with sockets",
        is_software=True,
    ),
    AdapterKind(
        prefixes=("efa_", "rdmap"),
        words=EFA,
        fix="install aws-ofi-nccl: NCCL's own verbs network does not carry EFA's SRD",
    ),
    AdapterKind(prefixes=("mana_",), words="Microsoft MANA"),
    AdapterKind(prefixes=("erdma_",), words="Alibaba's elastic RDMA"),
    AdapterKind(prefixes=("cxgb4_",), words="Chelsio iWARP"),
)
"""Source: linux-rdma/rdma-core, the names that the kernel's drivers give their devices. Adapters of
NVIDIA (mlx5_), Broadcom (bnxt_re) and Intel (irdma, rocep) are what NCCL says of them."""


def kind_of(adapter: str) -> AdapterKind | None:
    """Of an adapter that is not what `IB` or `RoCE` says; None: it is, or nobody knows."""
    name = adapter.casefold()
    return next((kind for kind in _KINDS if name.startswith(kind.prefixes)), None)


def adapters_words(adapters: Iterable[Adapter]) -> str:
    """`mlx5_0:1 (RoCE, 400 Gbit/s), mlx5_1:1 (RoCE, 400 Gbit/s) and 6 more`."""
    ordered = sorted(set(adapters), key=lambda adapter: (len(adapter.name), adapter.name))
    return listed([_words(adapter) for adapter in ordered], most=_MOST_ADAPTERS)


def _words(adapter: Adapter) -> str:
    speed = "" if adapter.speed_mbps is None else f", {show_rate(adapter.speed_mbps / 1000)}"
    return f"{adapter.name} ({adapter.link}{speed})"
