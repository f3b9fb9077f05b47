"""Where and how does an experiment run on Kubernetes or OpenShift? `kubernetes:` of an experiment.

What is the same for all of its networks; what one of these is to a pod stands in
`pod_networks.py`.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from broadgauge.specs.base import InOneWord, Name, Spec, did_you_mean, placed_error
from broadgauge.specs.kubernetes.names import (
    ImageName,
    LabelKey,
    LabelName,
    LabelValue,
    MountPath,
    ObjectName,
    ResourceName,
    SecretKey,
    UserNumber,
)
from broadgauge.specs.kubernetes.pod_prepare import PodPrepare
from broadgauge.specs.kubernetes.pod_volumes import Volume
from broadgauge.specs.secrets.names import url_secrets
from broadgauge.specs.secrets.token_forms import holds_token
from broadgauge.specs.secrets.variables import VARIABLE_PATTERN, holds_secret
from broadgauge.specs.units import CapacityBytes, TimeS

JobKind = Literal["job", "pytorchjob", "trainjob"]
ANY_IMAGE = "pytorch/pytorch:latest"
"""PyTorch's own, on Docker Hub: a beginning, until one is named."""


MANAGED_BY = "app.kubernetes.io/managed-by"
OUR_DOMAIN = "broadgauge.dev"
"""Of our own labels."""
NO_SIDECAR = "sidecar.istio.io/inject"
_NETWORK_ANNOTATIONS = (
    *("k8s.v1.cni.cncf.io/networks", "networking.gke.io/interfaces"),
    "networking.gke.io/default-interface",
)


class Toleration(Spec):
    """As in a pod: a taint that its pods may be placed in spite of."""

    key: LabelKey | None = None
    """The taint's; null: every taint."""
    operator: Literal["Equal", "Exists"] = "Exists"
    """`Exists`: whatever its value. `Equal`: with this `value`."""
    value: LabelValue | None = None
    """The taint's value, with `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; null: every one."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "Toleration":
        if (self.operator == "Equal") != (self.value is not None):
            raise placed_error("`Equal` takes a `value`, and `Exists` none", ("operator",))
        if self.operator == "Equal" and self.key is None:
            raise placed_error("`Equal` takes a `key`", ("operator",))
        return self


AnyToleration = Annotated[Toleration, BeforeValidator(InOneWord("key"))]


class SecretRef(Spec):
    """A key of a Secret in the namespace, as a variable of the ranks: we never see its value."""

    secret: ObjectName
    """Name of the Secret."""
    key: SecretKey
    """Which of its keys."""
    workloads: tuple[Name, ...] | None = None
    """Names of those whose ranks have the variable. null: all; empty: none, and `prepare` alone."""

    @model_validator(mode="before")
    @classmethod
    def _names_secret_and_key(cls, data: Any) -> Any:
        """What stands in their place is not shown: it may be the secret itself."""
        keys = data.keys() if isinstance(data, dict) else ()
        if not isinstance(data, cls) and not {"secret", "key"} <= set(keys):
            raise placed_error(
                "a variable of `secrets` takes the name of a Secret, and which key of it",
                (),
                "`HF_TOKEN: {secret: hf, key: token}`",
            )
        return data


class Queue(Spec):
    """Who admits the job."""

    kueue: ObjectName
    """A LocalQueue of the namespace."""


VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]


class Kubernetes(Spec):
    """The cluster's side of an experiment."""

    namespace: LabelName | None = None
    """null: where your kubeconfig's context points."""
    name: LabelName | None = None
    """With which the names of all objects begin. null: the experiment's `name`."""
    job: JobKind = "job"
    """What the pods belong to: a Job of Kubernetes itself, indexed; or, where the cluster has the
    operator, a PyTorchJob of Kubeflow's training operator (v1) or a TrainJob of Kubeflow Trainer.
    """
    image: ImageName = ANY_IMAGE
    """With Python 3.10 or newer and torch, where the nodes can pull it."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """null: Kubernetes' own choice, by the image's tag."""
    image_pull_secrets: tuple[ObjectName, ...] = Field(default=(), max_length=16)
    """Names of Secrets that the registry asks for."""
    python: str = Field(default="python3", min_length=1, max_length=1024)
    """In the image: the Python that has torch."""
    gpu_resource: ResourceName = "nvidia.com/gpu"
    """The extended resource that a GPU is."""
    gpus_per_pod: Annotated[int, Field(ge=1, le=64)] | None = None
    """A multiple of the ranks a node: a whole node of 8 for 4 ranks keeps others from its NICs.
    null: one a rank."""
    cpus: Annotated[float, Field(gt=0, le=4096)] | None = None
    """Of each pod, requested and its limit. null: one a rank where CPUs compute; with GPUs two a
    rank are requested, without a limit."""
    memory_bytes: CapacityBytes | None = None
    """Of each pod, requested and its limit. null: what the memory model says is requested, without
    a limit; of a `command` nobody knows it, and none is."""
    shm_bytes: CapacityBytes | None = None
    """Of /dev/shm, a memory volume, which counts against `memory_bytes`. null: 1 GiB a rank."""
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels that the nodes must have."""
    tolerations: tuple[AnyToleration, ...] = Field(default=(), max_length=32)
    """Taints that the pods may be placed in spite of; text alone is a taint's key."""
    priority_class: ObjectName | None = None
    """Name of the pods' PriorityClass."""
    service_account: ObjectName | None = None
    """The pods' own; no token of it is mounted. null: the namespace's default."""
    runtime_class: ObjectName | None = None
    """Name of the pods' RuntimeClass, `nvidia` on some clusters."""
    run_as_user: UserNumber | None = None
    """As which user the pods' processes run. null: the image's or, on OpenShift, one of the
    namespace's, never root; 0: root, which a policy of the cluster must allow."""
    fs_group: UserNumber | None = None
    """Group that `volumes` are given to, where a pod's user may not write them otherwise: claims
    are root's on most clusters. null: none or, on OpenShift, the namespace's."""
    queue: Queue | None = None
    """Who admits the job; null: it is scheduled at once, pod by pod."""
    allocation: Literal["one", "per_case"] = "one"
    """`one`: pods of every case of a shape are alike, with all networks attached, so that only the
    network that ranks send by differs. `per_case`: each case's pods have its own network only,
    where devices exclude each other."""
    memlock_is_raised: bool = False
    """May any process on the nodes lock as much memory as RDMA needs? false: root is given the
    capability IPC_LOCK for it, and for others it is said what they need."""
    topology_file: str | None = Field(default=None, min_length=1, max_length=1024)
    """NCCL's topology file (XML), beside the experiment. null: NCCL reads the PCI buses that a pod
    sees, which in a virtual machine do not tell which NIC is near which GPU."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """On every pod, beside ours."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """On every object, beside ours."""
    volumes: tuple[Volume, ...] = Field(default=(), max_length=16)
    """PersistentVolumeClaims that every pod mounts."""
    secrets: dict[VariableName, SecretRef] = Field(default_factory=dict)
    """Variables of the ranks: `HF_TOKEN: {secret: hf, key: token}`."""
    files: tuple[str, ...] = Field(default=(), max_length=64)
    """Beside the experiment, that the ranks need: sent in a ConfigMap. Scripts that a `command`
    names are sent without being listed."""
    prepare: PodPrepare | None = None
    """A Job that fetches model and data set onto a volume once, and for which all others wait.
    null: all is there."""
    results: LabelName | None = None
    """`run` only: name of the volume on which its leader keeps what is measured, so that it can be
    collected when the pods are gone. null: it goes with them."""
    working_folder: MountPath | None = None
    """Where commands run in the pod: of the image, or of a volume. null: where `files` are."""
    ttl_s: TimeS | None = None
    """How long a finished job stays, and its logs with it; a TrainJob stays. null: until somebody
    deletes it."""
    pending_limit_s: TimeS = 1800.0
    """`run` only: how long its pods may wait for nodes, images and data before it gives up. A job
    that a queue holds back is waited for without a limit."""
    deadline_s: TimeS | None = None
    """A job is ended after this long, whatever it does; null: no limit."""

    @model_validator(mode="after")
    def _volumes_differ(self) -> "Kubernetes":
        names = [volume.name for volume in self.volumes]
        mounts = [volume.path for volume in self.volumes]
        for i, (name, mount) in enumerate(zip(names, mounts, strict=True)):
            if name in names[:i]:
                raise placed_error(f"two volumes are named `{name}`", ("volumes", i, "name"))
            if mount in mounts[:i]:
                raise placed_error(f"two volumes at `{mount}`", ("volumes", i, "mount"))
        claims = [each.claim_name if each.size_bytes is not None else "" for each in self.volumes]
        for i, claim in enumerate(claims):
            if claim and claim in claims[:i]:
                raise placed_error(f"the claim `{claim}` is made twice", ("volumes", i, "claim"))
        return self

    @model_validator(mode="after")
    def _filled_volume_is_there(self) -> "Kubernetes":
        if self.prepare is None:
            return self
        named = [each for each in self.volumes if each.name == self.prepare.volume]
        if not named:
            raise self._no_such_volume(self.prepare.volume, ("prepare", "volume"))
        if not named[0].is_writable:
            raise placed_error(
                f"`{self.prepare.volume}` can't be written to, and has to be filled",
                ("prepare", "volume"),
            )
        return self

    @model_validator(mode="after")
    def _results_have_a_volume(self) -> "Kubernetes":
        volume = self.results_volume
        if self.results is not None and volume is None:
            raise self._no_such_volume(self.results, ("results",))
        if volume is not None and not volume.is_writable:
            raise placed_error(
                f"`{self.results}` can't be written to, and has to keep results", ("results",)
            )
        return self

    def _no_such_volume(self, name: str, path: tuple[str, ...]) -> ValueError:
        known = [each.name for each in self.volumes]
        hint = did_you_mean(name, known) or "an entry of `volumes` with this name"
        return placed_error(f"`{path[-1]}`: no volume is named `{name}`", path, hint)

    @property
    def results_volume(self) -> Volume | None:
        """That `results` names."""
        return next((each for each in self.volumes if each.name == self.results), None)

    def secrets_of(self, workload: str) -> dict[str, SecretRef]:
        """Those that its ranks have, by variable."""
        return {
            name: ref
            for name, ref in self.secrets.items()
            if ref.workloads is None or workload in ref.workloads
        }

    def volumes_of(self, workload: str) -> tuple[Volume, ...]:
        """Those that its pods mount."""
        return tuple(
            each for each in self.volumes if each.workloads is None or workload in each.workloads
        )

    @field_validator("labels")
    @classmethod
    def _leave_ours(cls, labels: dict[str, str]) -> dict[str, str]:
        for key in labels:
            if key == MANAGED_BY or key.partition("/")[0] == OUR_DOMAIN:
                raise placed_error(f"`{key}` is Broadgauge's own label", (key,), "another key")
        return labels

    @field_validator("annotations")
    @classmethod
    def _networks_are_ours(cls, annotations: dict[str, str]) -> dict[str, str]:
        for key, value in annotations.items():
            if key in _NETWORK_ANNOTATIONS:
                raise placed_error(
                    f"`{key}` is what is rendered of `networks`",
                    (key,),
                    "`networks[].kubernetes: {attachment: existing, definitions: …}`",
                )
            if key == NO_SIDECAR and value != "false":
                raise placed_error(
                    f"`{key}` is `false`: a mesh's proxy would stand between the ranks", (key,)
                )
        return annotations

    @model_validator(mode="after")
    def _files_have_one_place(self) -> "Kubernetes":
        if self.files and self.working_folder is not None:
            raise placed_error(
                "with a `working_folder` commands run among its files, and none are sent there",
                ("files",),
                "`files`, or `working_folder`",
            )
        return self

    @model_validator(mode="after")
    def _hold_no_secret(self) -> "Kubernetes":
        """Everybody who may look at the job reads its labels and annotations."""
        for key, texts in (("labels", self.labels), ("annotations", self.annotations)):
            for name, value in texts.items():
                word = name.rpartition("/")[2].replace("-", "_").replace(".", "_")
                if holds_secret(word, value) or url_secrets(value) or holds_token(value):
                    raise placed_error(
                        f"`{name}` holds a secret, which everybody who sees the job would read",
                        (key, name),
                        "`kubernetes.secrets`: a key of a Secret as a variable of the ranks",
                    )
        return self
