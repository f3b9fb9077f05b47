"""Is each object that an experiment names, and that is somebody else's, looked for once?"""

from tests.platforms.kubernetes.fake_api import NAMESPACE

from broadgauge.manifests.definitions import Interface
from broadgauge.platforms.kubernetes.named_objects import named_objects
from broadgauge.specs.kubernetes.settings import Kubernetes

SETTINGS = Kubernetes.model_validate(
    {
        "image_pull_secrets": ["registry"],
        "service_account": "trains",
        "secrets": {"HF_TOKEN": {"secret": "hf", "key": "a"}, "B": {"secret": "hf", "key": "b"}},
        "volumes": [
            {"name": "data", "mount": "/data"},
            {"name": "made", "mount": "/made", "size_bytes": "1 GiB", "storage_class": "fast"},
            {"name": "text", "mount": "/text", "config_map": "words"},
        ],
        "priority_class": "high",
        "runtime_class": "nvidia",
        "queue": {"kueue": "team"},
    }
)


def interface(definition: str, config: object = None) -> Interface:
    about = dict.fromkeys(("device", "resource", "address_range", "gateway"))
    flags = dict.fromkeys(
        ("is_chosen_by_resource", "has_address", "is_numbered", "is_mapped"), False
    )
    return Interface(
        name="net1",
        definition=definition,
        config=config,  # type: ignore[arg-type]
        left_out=(),
        networks=("vnic",),
        **about,  # type: ignore[arg-type]
        **flags,
    )


def test_each_is_named_once_with_its_place() -> None:
    found = named_objects(SETTINGS, [interface("vnic"), interface("default/roce")], NAMESPACE)
    assert [(each.place, each.words) for each in found] == [
        ("kubernetes.image_pull_secrets", f"Secret registry in namespace {NAMESPACE}"),
        ("kubernetes.service_account", f"ServiceAccount trains in namespace {NAMESPACE}"),
        ("kubernetes.secrets.HF_TOKEN", f"Secret hf in namespace {NAMESPACE}"),
        ("kubernetes.volumes.data", f"PersistentVolumeClaim data in namespace {NAMESPACE}"),
        ("kubernetes.volumes.text", f"ConfigMap words in namespace {NAMESPACE}"),
        ("kubernetes.queue.kueue", f"LocalQueue team in namespace {NAMESPACE}"),
        ("kubernetes.priority_class", "PriorityClass high"),
        ("kubernetes.runtime_class", "RuntimeClass nvidia"),
        ("kubernetes.volumes.made", "StorageClass fast"),
        (
            "networks.vnic.kubernetes.definitions",
            f"NetworkAttachmentDefinition vnic in namespace {NAMESPACE}",
        ),
        (
            "networks.vnic.kubernetes.definitions",
            "NetworkAttachmentDefinition roce in namespace default",
        ),
    ]


def test_what_is_made_for_the_run_is_nobodys_to_bring() -> None:
    assert named_objects(Kubernetes(), [interface("ours", config={})], NAMESPACE) == ()
