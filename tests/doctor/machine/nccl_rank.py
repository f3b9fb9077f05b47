"""One rank that uses NCCL by itself: no torch, whichever version of the library is named.

Run by record.py, on a machine with GPUs: `python nccl_rank.py RANK DEVICE ID_FILE SCENARIO`, with
NCCL_LIBRARY naming the library. What NCCL logs goes where NCCL_DEBUG_FILE or stdout says.
"""

import ctypes
import os
import sys
import time
from pathlib import Path

NUM_RANKS = 2
COUNT = 4 * 2**20
FLOAT32, SUM = 7, 0
"""Of ncclDataType_t and ncclRedOp_t in nccl.h."""


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def check(code: int, what: str) -> None:
    if code != 0:
        raise SystemExit(f"{what} failed with {code}")


def shared_id(nccl: ctypes.CDLL, rank: int, path: Path) -> UniqueId:
    """Rank 0 makes it, in its own network, and the others wait for its file."""
    identity = UniqueId()
    if rank == 0:
        check(nccl.ncclGetUniqueId(ctypes.byref(identity)), "ncclGetUniqueId")
        path.with_suffix(".part").write_bytes(bytes(identity))
        path.with_suffix(".part").rename(path)
        return identity
    while not path.exists():
        time.sleep(0.01)
    return UniqueId.from_buffer_copy(path.read_bytes())


def use_gpu(device: int) -> ctypes.c_void_p:
    """The memory of one message; the GPU's primary context is this thread's afterwards."""
    cuda = ctypes.CDLL("libcuda.so.1")
    check(cuda.cuInit(0), "cuInit")
    handle, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(handle), device), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(COUNT * 4)), "cuMemAlloc")
    return memory


def main() -> None:
    rank, device, id_file, scenario = sys.argv[1:]
    memory = use_gpu(int(device))
    nccl = ctypes.CDLL(os.environ["NCCL_LIBRARY"])
    identity = shared_id(nccl, int(rank), Path(id_file))
    comm = ctypes.c_void_p()
    print(f"rank {rank}: begins {scenario}", flush=True)
    check(
        nccl.ncclCommInitRank(ctypes.byref(comm), NUM_RANKS, identity, int(rank)),
        "ncclCommInitRank",
    )
    cuda = ctypes.CDLL("libcuda.so.1")
    for step in range(3):
        if scenario == "dead-peer" and rank == "1" and step == 1:
            os._exit(9)
        began_s = time.perf_counter()
        reduced = nccl.ncclAllReduce(
            memory, memory, ctypes.c_size_t(COUNT), FLOAT32, SUM, comm, ctypes.c_void_p()
        )
        check(reduced, "ncclAllReduce")
        check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
        print(f"rank {rank}: step {step} took {time.perf_counter() - began_s:.3f} s", flush=True)
    check(nccl.ncclCommDestroy(comm), "ncclCommDestroy")


if __name__ == "__main__":
    main()
