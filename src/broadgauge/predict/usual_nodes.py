"""How many GPUs stand in a node, where nobody says so?"""

from broadgauge.catalog.gpus import Gpu


def usual_gpus_per_node(gpu: Gpu) -> tuple[int, str]:
    """So many, and why: the largest board of its kind up to 8, else 8 slots."""
    if gpu.nvlink is not None:
        sizes = [board.gpus for board in gpu.nvlink.boards if board.topology != "bridge"]
        usual = max((size for size in sizes if size <= 8), default=None)
        if usual is not None:
            return usual, f"the usual board of {gpu.name}"
    return 8, "PCIe servers have up to 8"
