"""What does nvidia-smi say of this machine's GPUs?"""

import shutil
import subprocess
from collections.abc import Sequence

from broadgauge.messages.waiting_limits import waiting_limit_s

NVIDIA_SMI_LIMIT_S = waiting_limit_s(30.0)


def ask_nvidia_smi(fields: Sequence[str], limit_s: float = NVIDIA_SMI_LIMIT_S) -> str | None:
    """A line a GPU, as `cells_of` takes it. None: there is no such program, or it doesn't answer.

    Source: nvidia-smi --help-query-gpu.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        ended = subprocess.run(
            [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
            check=True,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout


def cells_of(text: str) -> list[list[str]]:
    """By line, a cell for each field that was asked for; lines that are no answer have others."""
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
