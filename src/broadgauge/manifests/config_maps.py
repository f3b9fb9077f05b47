"""What do pods find beside their image: the program, the case, the user's files?

Nothing of it is secret. Source of the limit: Kubernetes, "ConfigMaps": 1 MiB of data in each.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping

from broadgauge.manifests import names
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job import JobPods, PodJob
from broadgauge.manifests.yaml_text import Manifest

PROGRAM_KEY = "broadgauge.zip"
CASE_KEY = "case.json"
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")


def config_map(metadata: Manifest, data: Mapping[str, bytes]) -> Manifest:
    """One of them; text stands as text."""
    texts = {key: text for key, value in data.items() if (text := _text(value)) is not None}
    rest = {key: b64encode(value).decode() for key, value in data.items() if key not in texts}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        **({"data": texts} if texts else {}),
        **({"binaryData": rest} if rest else {}),
    }


def _text(value: bytes) -> str | None:
    """None: it is no text that a ConfigMap's `data` gives back byte by byte."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def program_map(job: JobPods) -> Manifest:
    """The zip file that the job's pods run."""
    about = names.metadata(job, names.program_name(job), names.job_labels(job))
    return config_map(about, {PROGRAM_KEY: job.program})


def files_map(job: JobPods) -> Manifest:
    """The user's files."""
    keys = file_keys(job.files)
    data = {keys[path]: content for path, content in job.files.items()}
    return config_map(names.metadata(job, names.files_name(job), names.job_labels(job)), data)


def program_file(job: PodJob) -> ManifestFile:
    """The zip file that its pods run. Each job has one of its own, so that another's end, or a
    newer version's rendering, takes nothing from it."""
    version = hashlib.sha256(job.program).hexdigest()[:16]
    return ManifestFile(
        path=f"40-job/{job.word}/10-program.yaml",
        comment=f"What runs in the pods: one zip file of Python (version {version}) with the "
        "entrypoint, which starts torchrun, and Broadgauge's own workloads.\n"
        "Made by Broadgauge from its own sources, the same for every job of its kind of workload.",
        objects=(program_map(job),),
    )


def case_file(job: PodJob) -> ManifestFile:
    """What this job's pods are told."""
    about = names.metadata(job, names.case_name_of(job), names.job_labels(job))
    return ManifestFile(
        path=f"40-job/{job.word}/20-case.yaml",
        comment="The case as the experiment means it, with nothing left to choose: to be read, and "
        "what Broadgauge's own workloads (train, collectives) are told.\n"
        "From the experiment's `workloads`, `networks`, `cluster`, `environment` and `seed`.",
        objects=(config_map(about, {CASE_KEY: job.told}),),
    )


def files_file(job: PodJob) -> ManifestFile | None:
    """The user's own; None: there are none."""
    if not job.files:
        return None
    return ManifestFile(
        path=f"40-job/{job.word}/30-files.yaml",
        comment="Your scripts and files, which each pod copies to where its command runs.\n"
        "From the words of the experiment's command that are files beside it, and from "
        "`kubernetes.files`.",
        objects=(files_map(job),),
    )


def file_keys(files: Mapping[str, bytes]) -> dict[str, str]:
    """Of each path the ConfigMap's key: its own where each can have one, else numbers for all.

    Source: apimachinery, util/validation, IsConfigMapKey.
    """
    flat = {path: path.replace("/", "__") for path in files}
    is_clear = len(set(flat.values())) == len(flat)
    if is_clear and all(_KEY.fullmatch(key) and ".." not in key for key in flat.values()):
        return flat
    return {path: f"file-{number:03}" for number, path in enumerate(flat)}
