"""A fake worker that leaves a log as NCCL would: `nccl_worker.py LOG`, a file of nccl_logs."""

import os
import runpy
import sys
from pathlib import Path

log = (Path(__file__).parent / "nccl_logs" / f"{sys.argv[1]}.log").read_text()
Path(os.environ["NCCL_DEBUG_FILE"]).write_text(log)
sys.argv = ["fake_worker.py", "well"]
runpy.run_path(str(Path(__file__).with_name("fake_worker.py")), run_name="__main__")
