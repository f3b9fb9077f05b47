"""Where in a cluster is a run's leader, for this tool and for one that comes later?"""

import getpass
import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from broadgauge.manifests.names import word_of
from broadgauge.messages.codec import Decoder
from broadgauge.platforms.led.leader_file import LeaderFile
from broadgauge.specs.kubernetes.settings import JobKind

STATE_FILE = "kubernetes.json"
"""In the run folder's logs: which job of which cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlace:
    """A job of ours in a cluster."""

    context: str | None
    """Of the user's kubeconfig, as it was found; `kubeconfig.SERVICE_ACCOUNT`: of a pod."""
    namespace: str
    run: str
    """The label of all that belongs to the run."""
    name: str
    """Of the job; what belongs to it begins so."""
    kind: JobKind
    """As in an experiment."""
    number: int
    """Of the run's jobs, from 0: each job that is lost has a successor of another name."""
    next_order: int = 1
    """Number of the next order that is put where its leader looks."""
    generation: int = 0
    """Of the jobs that its leader was given last."""
    uid: str | None = None
    """Of the job; None: it is not created yet, or the tool was killed as it created it."""
    num_pods: int | None = None
    """None: as above."""
    is_gone: bool = False
    """It was deleted; a successor is made beside where it was."""


JOB_PLACE: Decoder[JobPlace] = Decoder(JobPlace)


PlaceFile = LeaderFile[JobPlace]


def place_file(folder: Path) -> PlaceFile:
    """Of a run folder's logs."""
    return LeaderFile(
        folder / STATE_FILE, JOB_PLACE, "`broadgauge cleanup --namespace NAME` lists and removes"
    )


def this_owner() -> str:
    """Who runs it from here, as in an annotation: `user@host`. Printable, of 100 characters."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = str(os.getuid())
    return "".join(c for c in f"{user}@{socket.gethostname()}" if c.isprintable())[:100]


def run_label(experiment: str, folder: str) -> str:
    """Of a run's objects: of its experiment, and of the absolute path of the folder that it has.

    A DNS label of at most 31 characters that begins with a letter, as names of Services must.
    Source: Kubernetes, "Object Names and IDs", RFC 1035 label names.
    """
    word = word_of(experiment)
    named = word if word[:1].isalpha() else f"run-{word}"
    number = hashlib.sha256(f"{socket.gethostname()} {folder}".encode()).hexdigest()[:6]
    return f"{named[:24].strip('-')}-{number}"
