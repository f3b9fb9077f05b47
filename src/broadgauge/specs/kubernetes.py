"""Where and how does an experiment run on Kubernetes or OpenShift? `kubernetes:` of an experiment.

What is the same for all of its networks; how a pod gets one of these stands in `attached.py`.
"""

import posixpath
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from broadgauge.specs.base import Spec, placed_error
from broadgauge.specs.kubernetes_names import (
    ImageName,
    LabelKey,
    LabelValue,
    MountPath,
    NamespaceName,
    ObjectName,
    ResourceName,
    SecretKey,
    UserNumber,
)
from broadgauge.specs.secret_names import masked_url, url_secrets
from broadgauge.specs.units import SizeBytes, TimeS
from broadgauge.specs.variables import VARIABLE_PATTERN

JobKind = Literal["auto", "pytorchjob", "trainjob", "jobset", "job"]
OWN_IMAGE = "broadgauge:latest"
"""What the repository's Containerfile builds."""
OURS = "/broadgauge"
"""Where our own volumes are mounted; a user's may not be there."""
_OF_THE_KERNEL = ("/proc/", "/sys/")
_OF_THE_SYSTEM = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sys", "/usr")


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

    @model_validator(mode="before")
    @classmethod
    def _by_its_key(cls, value: Any) -> Any:
        return {"key": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _parts_fit(self) -> "Toleration":
        if (self.operator == "Equal") != (self.value is not None):
            raise placed_error("`Equal` takes a `value`, and `Exists` none", ("operator",))
        if self.operator == "Equal" and self.key is None:
            raise placed_error("`Equal` takes a `key`", ("operator",))
        return self


class Volume(Spec):
    """A PersistentVolumeClaim that every pod mounts: one that is there, or with `size_bytes` one
    that is made."""

    name: NamespaceName
    """In the pod, and of the claim where `claim` is not said."""
    mount: MountPath
    """Where, in every container of the user's."""
    claim: ObjectName | None = None
    """null: `name`."""
    size_bytes: SizeBytes | None = None
    """Make it so large, with the run's networks; it stays when the run is deleted. null: it is
    there."""
    storage_class: ObjectName | None = None
    """null: the cluster's default."""
    access: Literal["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"] = "ReadWriteMany"
    """How many nodes may mount it; several nodes need one of the first two."""
    is_read_only: bool = False
    """Mount it so that no pod writes to it."""

    @model_validator(mode="after")
    def _not_over_ours(self) -> "Volume":
        path = self.path
        if f"{path}/".startswith(f"{OURS}/"):
            raise placed_error(f"`{OURS}` is Broadgauge's own folder", ("mount",))
        if path in _OF_THE_SYSTEM or path.startswith(_OF_THE_KERNEL):
            raise placed_error(f"`{path}` hides what every program needs", ("mount",), "`/data`")
        if f"{path}/".startswith("/dev/shm/"):
            raise placed_error(
                "/dev/shm is a memory volume already",
                ("mount",),
                "`kubernetes.shm_bytes`: its size",
            )
        if self.size_bytes is None and self.storage_class is not None:
            raise placed_error(
                "`storage_class` is of a claim that is made", ("storage_class",), "`size_bytes: …`"
            )
        return self

    @property
    def path(self) -> str:
        """`mount` as a kernel reads it, without `..` and doubled slashes."""
        return "/" + posixpath.normpath(self.mount).lstrip("/")

    @property
    def claim_name(self) -> str:
        """Of the PersistentVolumeClaim."""
        return self.claim or self.name


class SecretRef(Spec):
    """A key of a Secret in the namespace, as a variable of the ranks: we never see its value."""

    secret: ObjectName
    """Name of the Secret."""
    key: SecretKey
    """Which of its keys."""


class Prepare(Spec):
    """What a Job fetches onto a volume once, before any training: model and data set."""

    volume: NamespaceName
    """Which of `volumes` it fills."""
    model: str | None = Field(default=None, min_length=1, max_length=512)
    """A Hugging Face hub id, a URL of an archive, or a path in the image. Ranks find it at
    BROADGAUGE_MODEL."""
    model_revision: str = "main"
    """Branch, tag or commit of the model's repository."""
    dataset: str | None = Field(default=None, min_length=1, max_length=512)
    """A Hugging Face data set's id, a URL of an archive, or a path in the image. Ranks find it at
    BROADGAUGE_DATASET."""
    dataset_config: str | None = None
    """The data set's configuration, `main` of gsm8k; null: its only one."""
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Of yours, run after these where `files` are: tokenising, … It writes to BROADGAUGE_PREPARED,
    which ranks have, too."""
    image: ImageName | None = None
    """null: the ranks' image."""
    cpus: Annotated[float, Field(gt=0, le=4096)] | None = None
    """Of its pod, requested and its limit. null: a tenth of one is requested, and it may use more.
    """
    memory_bytes: SizeBytes | None = None
    """Of its pod, requested and its limit. null: 256 MiB are requested, and it may use more."""

    @model_validator(mode="after")
    def _something(self) -> "Prepare":
        if self.model is None and self.dataset is None and self.command is None:
            raise ValueError("at least one of `model`, `dataset` and `command`")
        return self

    @model_validator(mode="after")
    def _nothing_secret(self) -> "Prepare":
        for key in ("model", "dataset"):
            _refuse_secrets(getattr(self, key), (key,))
            _refuse_no_url(getattr(self, key), (key,))
        for i, word in enumerate(self.command or ()):
            _refuse_secrets(word, ("command", i))
        return self


def _refuse_secrets(text: str | None, path: tuple[str | int, ...]) -> None:
    """Manifest, Job and log would show it. Raises a placed error, which does not."""
    if text is not None and (found := url_secrets(text)):
        raise placed_error(
            f"`{masked_url(text)}` has credentials in its URL ({', '.join(found)}), and everybody "
            "who reads the manifest would have them",
            path,
            "put them into a Secret, name it in `kubernetes.secrets`, and let `prepare.command` "
            "fetch with that variable; HF_TOKEN is all that the Hugging Face hub needs",
        )


def _refuse_no_url(text: str | None, path: tuple[str | int, ...]) -> None:
    """A password with a blank or `/` in it is not seen as one. Raises a placed error, without it.

    Source: RFC 3986, 3.2: both must be escaped there, and what follows a host's colon is a port.
    """
    scheme, mark, _ = (text or "").partition("://")
    if not mark:
        return
    try:
        url = urlsplit(text or "")
        is_plain = "@" not in url.netloc and url.port != 0
    except ValueError:  # its words repeat what may be a password
        is_plain = False
    if not is_plain:
        raise placed_error(
            f"`{scheme}://***` is not `{scheme}://host/path` or `{scheme}://host:port/path`",
            path,
            "a user or password has no place in it: everybody who reads the manifest would have "
            "them; `kubernetes.secrets` gives them to `prepare.command`",
        )


VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]


class Queue(Spec):
    """Who admits the job: exactly one."""

    kueue: ObjectName | None = None
    """A LocalQueue of the namespace."""
    volcano: ObjectName | None = None
    """A Volcano queue: its scheduler starts all pods or none."""

    @model_validator(mode="after")
    def _one(self) -> "Queue":
        if (self.kueue is None) == (self.volcano is None):
            raise ValueError("exactly one of `kueue` and `volcano`")
        return self


class Kubernetes(Spec):
    """The cluster's side of an experiment."""

    namespace: NamespaceName | None = None
    """null: that of your kubeconfig's context, else `default`."""
    context: str | None = Field(default=None, min_length=1, max_length=253)
    """Of your kubeconfig. null: the current one."""
    job: JobKind = "auto"
    """What the pods belong to. `auto`: a PyTorchJob, else a TrainJob, a JobSet, an indexed Job,
    whichever the cluster has first. Without a cluster (`render`): a PyTorchJob."""
    runtime: ObjectName | None = None
    """Of a TrainJob: a ClusterTrainingRuntime that is there. null: a TrainingRuntime of our own is
    written beside it."""
    image: ImageName = OWN_IMAGE
    """With Python 3.10 or newer and torch. The default is what the repository's Containerfile
    builds, wherever your cluster gets it from."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """null: Kubernetes' own choice, by the image's tag."""
    image_pull_secrets: tuple[ObjectName, ...] = Field(default=(), max_length=16)
    """Names of Secrets that the registry asks for."""
    init_image: ImageName | None = None
    """Of init containers that Broadgauge adds; null: `image`."""
    python: str = Field(default="python3", min_length=1, max_length=1024)
    """In the image: the Python that has torch."""
    gpu_resource: ResourceName = "nvidia.com/gpu"
    """The extended resource that a GPU is; one is asked for a rank."""
    cpus: Annotated[float, Field(gt=0, le=4096)] | None = None
    """Of each pod, requested and its limit. null: one a rank where CPUs compute; on GPUs' nodes
    two a rank are requested, without a limit."""
    memory_bytes: SizeBytes | None = None
    """Of each pod, its limit too. null: what the memory model says of `train` and `collectives` is
    requested, without a limit; of a `command` nobody knows it, and none is asked for."""
    shm_bytes: SizeBytes | None = None
    """Of /dev/shm, a memory volume, which counts against `memory_bytes`. null: 1 GiB a rank."""
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels that the nodes must have."""
    tolerations: tuple[Toleration, ...] = Field(default=(), max_length=32)
    """Taints that the pods may be placed in spite of; text alone is a taint's key."""
    priority_class: ObjectName | None = None
    """Name of the pods' PriorityClass."""
    service_account: ObjectName | None = None
    """The pods' own; no token of it is mounted. null: the namespace's default."""
    runtime_class: ObjectName | None = None
    """Name of the pods' RuntimeClass, `nvidia` on some clusters."""
    run_as_user: UserNumber | None = None
    """As which user the pods' processes run. null: the image's or, on OpenShift, the namespace's,
    and never root. 0: root, which some images need, and IPC_LOCK too."""
    fs_group: UserNumber | None = None
    """Group that `volumes` are given to, where a pod's user may not write them otherwise: claims
    are root's on most clusters. null: none or, on OpenShift, the namespace's."""
    queue: Queue | None = None
    """Who admits the job; null: it is scheduled at once, pod by pod."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """On every pod, beside ours."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """On every object."""
    volumes: tuple[Volume, ...] = Field(default=(), max_length=16)
    """PersistentVolumeClaims that every pod mounts."""
    results: NamespaceName | None = None
    """Which of `volumes` keeps what is measured, for when pods and their logs are gone before the
    tool has read them. null: only the first pod's log carries it."""
    secrets: dict[VariableName, SecretRef] = Field(default_factory=dict)
    """Variables of the ranks: `HF_TOKEN: {secret: hf, key: token}`."""
    files: tuple[str, ...] = Field(default=(), max_length=64)
    """Beside the experiment, that the ranks need: sent in a ConfigMap, 900 kB in all. Scripts that
    a `command` names are sent without being listed."""
    working_folder: MountPath | None = None
    """Where commands run in the pod: of the image, or of a volume. null: where `files` are."""
    prepare: Prepare | None = None
    """A Job that fetches model and data onto a volume once; null: all is there."""
    memlock_is_raised: bool = False
    """The nodes' container engine lets a process lock as much memory as RDMA needs. `false`: pods
    on RDMA networks ask for the capability IPC_LOCK, which only root's processes get
    (`run_as_user: 0`)."""
    preflight_s: TimeS | Literal[0] = 30.0
    """How long the check of all pairs and of RDMA may take before the first launch; 0: none."""
    pending_limit_s: TimeS = 1800.0
    """How long pods may wait to be scheduled and started, before the run gives up; a queue's wait
    (`queued`) does not count."""
    ttl_s: TimeS = 259_200.0
    """How long a finished job stays where the tool was not there to delete it, and its logs with
    it: what of them was not read until then is lost, but for `results`. A TrainJob stays until
    `broadgauge cleanup`. It holds no GPU."""
    deadline_s: TimeS | None = None
    """The job is ended after this long, whatever it does; null: no limit."""

    planned: ClassVar[dict[str, str]] = {}

    @property
    def unread_results_kept(self) -> str | None:
        """How long are results there that the tool has not read? None: until someone deletes
        them."""
        if self.results is not None:
            return None
        return (
            f"{self.ttl_s / 3600:.3g} h after its end Kubernetes deletes job and logs "
            "(`kubernetes.ttl_s`): go on before, or keep them on a volume (`kubernetes.results`)"
        )

    @model_validator(mode="after")
    def _volumes_are_known(self) -> "Kubernetes":
        names = [volume.name for volume in self.volumes]
        mounts = [volume.path for volume in self.volumes]
        for i, (name, mount) in enumerate(zip(names, mounts, strict=True)):
            if name in names[:i]:
                raise placed_error(f"two volumes are named `{name}`", ("volumes", i, "name"))
            if mount in mounts[:i]:
                raise placed_error(f"two volumes at `{mount}`", ("volumes", i, "mount"))
        if self.results is not None and self.results not in names:
            raise placed_error(f"no volume is named `{self.results}`", ("results",))
        if self.prepare is not None and self.prepare.volume not in names:
            raise placed_error(f"no volume is named `{self.prepare.volume}`", ("prepare", "volume"))
        read_only = [volume.name for volume in self.volumes if volume.is_read_only]
        filled = None if self.prepare is None else self.prepare.volume
        for key, written in (("results", self.results), ("prepare", filled)):
            if written in read_only:
                raise placed_error(f"`{written}` is mounted read-only", (key,))
        return self
