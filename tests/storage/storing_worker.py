"""A rank that uses its storage, and then does what fake_worker.py does in this scenario."""

import os
import runpy
import sys
from pathlib import Path

from broadgauge.messages.emulated_storage import storage_folder

folder = Path(storage_folder("one"))
(folder / f"rank{os.environ['RANK']}").write_text("mine")
assert os.environ["AWS_ACCESS_KEY_ID"], "no keys"
assert os.environ["AWS_SECRET_ACCESS_KEY"], "no keys"
fake = Path(__file__).parents[1] / "platforms/fake_worker.py"
sys.argv[0] = str(fake)
runpy.run_path(str(fake), run_name="__main__")
