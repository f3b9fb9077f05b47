"""NCCL's log of one of two ranks on two hosts, as rendered from the format strings of 2.28.9.

No machine with RDMA is here. Source: NVIDIA/nccl v2.28.9, src/init.cc, src/transport/net.cc,
net_ib.cc, net_socket.cc.
"""

from typing import Literal

Network = Literal["roce", "roce-staged", "sockets"]
_ADAPTER = "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.{node}<0>"
_HEAD = {
    "roce": (_ADAPTER, "Using network IB"),
    "roce-staged": (_ADAPTER, "Using network IB"),
    "sockets": (
        "NET/IB : No device found.",
        "NET/Socket : Using [0]eth0:10.0.0.{node}<0>",
        "Using network Socket",
    ),
}
_VIA = {"roce": "NET/IB/0/GDRDMA", "roce-staged": "NET/IB/0", "sockets": "NET/Socket/0"}
MEMLOCK = "Call to ibv_reg_mr failed with error Cannot allocate memory errno 12"


def nccl_log(network: Network, rank: int, *warnings: str) -> str:
    """All that it says, warnings at the end."""
    comm = f"comm 0x5581 rank {rank} nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0"
    other = 1 - rank
    via = _VIA[network]
    lines = (
        "NCCL version 2.28.9+cuda12.9",
        *_HEAD[network],
        f"ncclCommInitRank comm 0x5581 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 60 "
        "commId 0xabc - Init START",
        comm,
        "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, "
        "1 p2p channels per peer",
        f"ncclCommInitRank comm 0x5581 rank {rank} nranks 2 cudaDev 0 nvmlDev 0 busId 60 "
        "commId 0xabc - Init COMPLETE",
        *(
            line
            for channel in range(2)
            for line in (
                f"Channel {channel:02d}/0 : {other}[0] -> {rank}[0] [receive] via {via}",
                f"Channel {channel:02d}/0 : {rank}[0] -> {other}[0] [send] via {via}",
            )
        ),
        "Connected all rings, use ring PXN 0 GDR 1",
    )
    prefix = f"node{rank}:{100 + rank}:{100 + rank} [0]"
    said = [f"{prefix} NCCL INFO {line.format(node=rank + 1)}" for line in lines]
    warned = [f"\n{prefix} transport/net_ib.cc:1 NCCL WARN {line}" for line in warnings]
    return "\n".join([*said, *warned, ""])
