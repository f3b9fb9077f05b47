"""Can torch.compile work here, and how long has it worked?"""

import shutil
from typing import Any

import torch

from broadgauge.probes.trial import RefusedError

SHAPES_AHEAD = ((2, 5), (3, 6), (1, 7))
"""Rows and tokens of micro-batches after which packed ones of any shape are compiled: torch takes
the first as it is, the second for sizes that differ, and a single row by itself. Source: torch
2.11, torch._dynamo.config, `automatic_dynamic_shapes`, and tests/probes/test_compiled_training.py.
"""
C_COMPILERS = ("cc", "gcc", "clang")


def begin_compiling(device: Any) -> float:
    """Forgets what trials before have compiled, and gives `compiled_s` from here. Raises
    RefusedError where a compiler is missing: torch would say so in its first step, after everything
    else was set up.

    Blocks are compiled one by one (building.py), so their gradients come one by one: under DDP
    torch would cut each block's graph again where a bucket ends.
    """
    if device.type == "cuda":
        _refuse_without_triton()
    else:
        _refuse_without_cpp()
    torch._dynamo.reset()
    torch._dynamo.config.optimize_ddp = False
    return compiled_s()


def compiled_s() -> float:
    """How long has this process compiled so far, graphs of backward passes among it? Source: torch
    2.11, torch._dynamo.utils, `calculate_time_spent`."""
    return float(torch._dynamo.utils.calculate_time_spent().get("total_wall_time", 0.0))


def _refuse_without_cpp() -> None:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise RefusedError(
            "`compile: true` on a CPU needs a C++ compiler, and none is here (Debian: apt-get "
            "install g++; CXX names one)"
        ) from error


def _refuse_without_triton() -> None:
    from torch.utils._triton import has_triton

    if not has_triton():
        raise RefusedError(
            "`compile: true` needs Triton, which can't be used with this torch and GPU (pip "
            "install triton)"
        )
    if not any(map(shutil.which, C_COMPILERS)):
        raise RefusedError(
            "`compile: true` needs a C compiler, with which Triton builds its launchers, and none "
            "is here (Debian: apt-get install gcc)"
        )
