"""A worker with a fault planted in how it measures storages. Argument: the fault."""

import sys
import threading
from typing import Any

from broadgauge.probes import worker
from broadgauge.probes.storage import models


def hang(*_: Any) -> Any:
    threading.Event().wait()


if "hang" in sys.argv:
    models._Loading._read = hang  # type: ignore[method-assign]
if __name__ == "__main__":
    sys.exit(worker.main())
