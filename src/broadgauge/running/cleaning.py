"""What have runs left in a cluster, and how is it removed? By our labels, and nothing else's."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from broadgauge.manifests.names import OWNER, RUN
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import place_file, this_owner
from broadgauge.platforms.kubernetes.job_states import RESOURCES, has_ended, serves
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, labels_in, mapping, text
from broadgauge.platforms.kubernetes.owned import (
    OF_EACH_RUN,
    delete_all,
    find_all,
    is_ours,
    selector_of,
)
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import JOB_KINDS, PODS, Resource
from broadgauge.results.folder.lock import is_being_written
from broadgauge.results.folder.reading import find_run
from broadgauge.results.folder.run_folder import LOGS_FOLDER
from broadgauge.results.run_path import newest_first
from broadgauge.specs.errors import InputError, RunFolderError

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """All that one run has in a namespace."""

    run: str
    """Its label."""
    objects: tuple[str, ...]
    """`Job pods-1a2b3c4d`, owners first."""
    owners: tuple[str, ...]
    """`user@host` of who ran it; empty: nothing of it says."""
    created_s: float | None
    """Seconds since 1970, of the oldest; None: the server doesn't say."""
    pods: tuple[tuple[str, int], ...] | None
    """Phase and number; None: pods could not be read."""
    has_open_job: bool
    """A job of it is there of which pods may be made: it waits for a queue, or replaces them."""

    @property
    def is_mine(self) -> bool:
        """Was all of it made by this user on this machine?"""
        return set(self.owners) == {this_owner()}

    @property
    def may_run(self) -> bool:
        """Is a pod unfinished, or may there be one soon, as far as can be seen?"""
        if self.pods is None or self.has_open_job:
            return True
        return any(phase not in ENDED for phase, _ in self.pods)

    @property
    def words(self) -> str:
        """`3 h old, of ana@laptop, pods: 2 Running`."""
        age = "of unknown age" if self.created_s is None else _age(time.time() - self.created_s)
        owners = f"of {', '.join(self.owners)}" if self.owners else "of nobody knows whom"
        if self.pods is None:
            pods = "pods could not be read"
        else:
            listed = ", ".join(f"{number} {phase}" for phase, number in self.pods)
            pods = f"pods: {listed or 'none'}"
        return f"{age}, {owners}, {pods}"

    def why_kept(self, *, running: bool, of_others: bool) -> str | None:
        """Why `--all` leaves it; None: it is deleted. The arguments: delete these, too."""
        if not self.is_mine and not of_others:
            return "it is somebody else's: --of-others deletes it, too"
        if self.may_run and not running:
            return "it may be running: --running deletes it, too"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What was found, and where nobody could look."""

    runs: tuple[Leftover, ...]
    unseen: tuple[str, ...]
    """`secrets in namespace training: you may not list them`."""


@dataclass(frozen=True, slots=True)
class CleaningPlace:
    """Where to look."""

    api: Api
    namespace: str
    job: Resource | None = None
    """The kind of job of the one run that is looked at; None: nobody knows. Who may not list a kind
    that it has not misses nothing."""

    def leftovers(self, run: str | None) -> Leftovers:
        """Of all runs, or of one. Raises PlatformError."""
        runs: dict[str, list[tuple[Resource, JsonMap]]] = defaultdict(list)
        try:
            found = find_all(self.api, self.namespace, run)
        except ApiError as error:
            raise refusal(error, "looking for what runs have left") from error
        for resource, item in found.objects:
            runs[labels_in(item)[RUN]].append((resource, item))
        # Jobs before pods: of one that has ended no pod comes meanwhile.
        ended = self._ended_jobs(run, {resource for resource, _ in found.objects})
        phases = self._phases(run) if runs else {}
        return Leftovers(
            runs=tuple(_leftover(name, runs[name], phases, ended) for name in sorted(runs)),
            unseen=tuple(
                f"{resource.words(self.namespace)}: {_why(error)}"
                for resource, error in found.unseen.items()
                if self._may_have(resource, error)
            ),
        )

    def _ended_jobs(self, run: str | None, kinds: set[Resource]) -> set[str]:
        """The uids of those whose status can be read and says so."""
        uids: set[str] = set()
        for resource in kinds.intersection(JOB_KINDS):
            try:
                found = self.api.list(resource, self.namespace, selector_of(run))
            except ApiError:
                continue
            ended = (item["metadata"].get("uid") for item in found["items"] if has_ended(item))
            uids.update(uid for uid in ended if isinstance(uid, str))
        return uids

    def _phases(self, run: str | None) -> dict[str, Counter[str]] | None:
        """How many of a run's pods are in which; None: they can't be read."""
        try:
            found = self.api.list(PODS, self.namespace, selector_of(run))
        except ApiError:
            return None
        phases: dict[str, Counter[str]] = defaultdict(Counter)
        for item in found["items"]:
            if is_ours(PODS, item, run):
                phase = text(mapping(item.get("status")).get("phase")) or "Unknown"
                phases[labels_in(item)[RUN]][phase] += 1
        return phases

    def remove(self, leftover: Leftover, say: Callable[[str], None]) -> bool:
        """Its claims stay. False: it can't be told whether all is gone."""
        return delete_all(self.api, self.namespace, leftover.run, say, self.job)

    def _may_have(self, resource: Resource, error: ApiError) -> bool:
        """A kind that is not there is forbidden too, to who has no rights to it."""
        if self.job is not None and error.status == 403:
            return resource in (*OF_EACH_RUN, self.job)
        if error.status != 403 or not resource.group:
            return True
        try:
            return serves(self.api, resource)
        except ApiError:
            return True


def _leftover(
    run: str,
    objects: list[tuple[Resource, JsonMap]],
    phases: dict[str, Counter[str]] | None,
    ended: set[str],
) -> Leftover:
    owners, created = set(), []
    for _, item in objects:
        about = item["metadata"]
        owner = text(mapping(about.get("annotations")).get(OWNER))
        if owner is not None:
            owners.add(owner)
        when = _seconds(text(about.get("creationTimestamp")))
        if when is not None:
            created.append(when)
    jobs = [item["metadata"].get("uid") for each, item in objects if each in JOB_KINDS]
    pods = None if phases is None else phases.get(run, Counter())
    return Leftover(
        run=run,
        objects=tuple(f"{each.kind} {item['metadata']['name']}" for each, item in objects),
        owners=tuple(sorted(owners)),
        created_s=min(created, default=None),
        pods=None if pods is None else tuple(sorted(pods.items())),
        has_open_job=any(uid not in ended for uid in jobs),
    )


def _seconds(when: str | None) -> float | None:
    """Source: Kubernetes, API conventions: times are of RFC 3339, in UTC."""
    try:
        return None if when is None else datetime.fromisoformat(when).timestamp()
    except ValueError:
        return None


def _age(age_s: float) -> str:
    for unit, unit_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if age_s >= 2 * unit_s:
            return f"{age_s // unit_s:.0f} {unit} old"
    return "new"


def _why(error: ApiError) -> str:
    return f"you may not {error.verb} them" if error.status == 403 else error.message


def check_is_not_followed(folder: Path) -> None:
    """Raises InputError while a tool here follows this run: of a job that is gone it would make a
    successor."""
    if is_being_written(folder):
        raise InputError(
            f"{folder} is being run, and another job would follow the one that is deleted",
            hint="end that `broadgauge run` with Ctrl-C: it deletes what it has made",
        )


def cleaning_place(context: str | None, namespace: str | None) -> CleaningPlace:
    """Raises InputError."""
    api = Api.connect(context)
    return CleaningPlace(api, namespace or api.default_namespace)


def place_of_run(
    folder: Path, context: str | None, namespace: str | None
) -> tuple[CleaningPlace, str] | None:
    """Where the run of this folder has its job, and its label; None: it names none, since it has
    deleted it or ran elsewhere. Raises InputError; RunFolderError where it is no run
    folder, or says what can't be read.

    `context` and `namespace`: instead of those that the folder names; None: as it does.
    """
    place = place_file(folder / LOGS_FOLDER).read()
    if place is None or place.is_gone:
        find_run(folder)
        return None
    api = Api.connect(context if context is not None else place.context)
    return CleaningPlace(api, namespace or place.namespace, RESOURCES[place.kind]), place.run


def labels_of_runs(runs_folder: Path) -> dict[str, str]:
    """By the folder's name, of each run in this one that had a job in a cluster."""
    labels: dict[str, str] = {}
    for folder in newest_first(runs_folder):
        with suppress(RunFolderError):  # a file that can't be read names no job
            place = place_file(folder / LOGS_FOLDER).read()
            if place is not None:
                labels[folder.name] = place.run
    return labels
