"""Experiments for SkyPilot, as tests want them."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broadgauge.engine.plan import make_plan
from broadgauge.manifests.files import Rendered
from broadgauge.platforms.skypilot.devices import skypilot_devices
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.rendering_skypilot import render_skypilot
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment

BUCKET = "s3://your-bucket"
TWO_TIERS = (
    {"name": "ethernet", "rate_gbps": "10 Gbit/s", "skypilot": "standard"},
    {"name": "infiniband", "skypilot": {"network_tier": "best", "nominal_gbps": "400 Gbit/s"}},
)


def experiment_of(
    shapes: tuple[str, ...] = ("2x8",), networks: Any = TWO_TIERS, **skypilot: Any
) -> Experiment:
    """Collectives on H100s."""
    return Experiment.model_validate(
        {
            "name": "sky-test",
            "platform": "skypilot",
            "skypilot": {"accelerators": "H100:8", **skypilot},
            "cluster": {"shapes": list(shapes), "device": "cuda"},
            "networks": list(networks),
            "workloads": [{"kind": "collectives", "ops": ["all_reduce"], "sizes": ["1 MiB"]}],
        }
    )


def cases_of(experiment: Experiment) -> tuple[Case, ...]:
    """As they are planned."""
    return make_plan(experiment, {"skypilot": skypilot_devices(experiment)}).cases


def rendered(experiment: Experiment) -> Rendered:
    """For people who launch by hand."""
    return render_skypilot(
        LoadedExperiment(experiment=experiment, source="e.yaml", folder=Path("/somewhere"))
    )


_paths = st.sampled_from(["/data", "/model", "/checkpoints", "/mnt/a b", "/mnt/ü"])
_mounts = st.one_of(
    st.sampled_from(["./conf", f"{BUCKET}/conf"]),
    st.just({"source": BUCKET, "mode": "MOUNT"}),
    st.builds(
        lambda cached: {"source": BUCKET, "mode": "MOUNT_CACHED", "mount_cached": cached},
        st.fixed_dictionaries(
            {},
            optional={
                "transfers": st.integers(1, 64),
                "vfs_cache_max_size": st.sampled_from(["10G", "200g", "5"]),
                "vfs_write_back": st.sampled_from(["1s", "1m30s", "500ms"]),
                "vfs_read_chunk_streams": st.integers(0, 8),
                "read_only": st.booleans(),
            },
        ),
    ),
)
settings = st.fixed_dictionaries(
    {},
    optional={
        "infra": st.sampled_from(["nebius", "aws/us-east-1", "gcp/us-central1/us-central1-a"]),
        "disk_tier": st.sampled_from(["low", "medium", "high", "ultra", "best"]),
        "disk_size": st.integers(50, 4000),
        "image_id": st.sampled_from(["ami-0123", "docker:nvcr.io/nvidia/pytorch:25.01-py3"]),
        "use_spot": st.booleans(),
        "workdir": st.sampled_from([".", "code"]),
        "secrets": st.just(["HF_TOKEN"]),
        "envs": st.dictionaries(
            st.sampled_from(["A", "B_2"]), st.text(st.characters(codec="ascii"), max_size=20)
        ),
        "file_mounts": st.dictionaries(_paths, _mounts, max_size=3),
        "volumes": st.dictionaries(st.sampled_from(["/v1", "/v2"]), st.just("claim"), max_size=2),
        "setup": st.sampled_from(
            ["true", "pip install -r requirements.txt\n", "echo 'no: yaml' # %\nexit 0\n"]
        ),
        "idle_minutes": st.integers(1, 60),
        "max_cost_usd": st.floats(5_000, 100_000),
    },
)
"""Of `skypilot:`, whatever may be said there."""
experiments = st.builds(
    lambda shapes, said: experiment_of(shapes=tuple(shapes), **said),
    st.lists(st.sampled_from(["1x8", "2x8", "2x4", "4x8"]), min_size=1, max_size=3, unique=True),
    settings,
)
given_experiment = given(experiment=experiments)
"""For what wants many at once."""
