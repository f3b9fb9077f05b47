"""Does the probe write what a plan says before it begins, phase by phase?"""

import pytest
from tests.messages.test_storage_bytes import TASK

from broadgauge.messages.storage_bytes import traffic_by_phase
from broadgauge.probes.devices import choose_device
from broadgauge.probes.storage import batches, checkpoints, models, raw
from broadgauge.probes.storage.place import OwnPlace
from broadgauge.probes.storage.ranks import Peers
from broadgauge.probes.storage.variants import Here

pytestmark = pytest.mark.measuring
NODES, RANKS_PER_NODE = 2, 2


def test_the_sums_of_all_variants_are_the_plans() -> None:
    device = choose_device("cpu", 0)
    here = Here(
        own=OwnPlace(place=TASK.place, token="t", folder="/mnt/ours", objects=None, behind=None),
        ranks=Peers(rank=0, world_size=NODES * RANKS_PER_NODE, group=None),
        local_rank=0,
        caches=TASK.caches,
        time_left_s=lambda: 1.0,
    )
    variants = {
        "raw": raw.variants(here, TASK.raw, is_direct=False),
        "batch_loading": batches.variants(here, TASK.batch_loading, device),
        "model_loading": models.variants(here, TASK.model_loading, device, NODES),
        "checkpoint_saving": checkpoints.variants(
            here, TASK.checkpoint_saving, device, checkpoints.SavedList()
        ),
    }
    planned = traffic_by_phase(TASK, nodes=NODES, ranks_per_node=RANKS_PER_NODE)
    assert {phase: sum(each.written_bytes for each in of) for phase, of in variants.items()} == {
        phase: traffic.written_bytes for phase, traffic in planned.items()
    }
