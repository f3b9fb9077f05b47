"""How do the tests launch ranks that have an emulated storage?"""

import sys
from pathlib import Path

from tests.platforms.launches import make_case, make_folders, make_request, quiet

from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_plan import Programs
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Launch
from broadgauge.specs.storage import EmulatedKind, EmulatedStorage, Storage

WORKER = Path(__file__).with_name("storing_worker.py")


def start(folder: Path, scenario: str, *, kind: EmulatedKind) -> tuple[Launch, Case]:
    """Two ranks on two nodes that write to it when they start."""
    storage = Storage(name="one", emulated=EmulatedStorage(kind=kind))
    case = make_case("emulated", storage=storage)
    programs = Programs(worker=(sys.executable, str(WORKER), scenario))
    platform = EmulatedPlatform(make_folders(folder), programs=programs)
    return platform.start(make_request(case), quiet), case
