"""How is one cluster brought up, known as hosts, and brought down again?

    the ledger has it ─▶ sky launch: bare machines, their autodown ─▶ sky launch: files, setup, run
             ─▶ ready: `ssh NAME`, `ssh NAME-worker1`, … are hosts ─▶ sky down ─▶ the ledger

`run` holds the cluster while a leader measures on it, and ends at the limit; then it is idle, and
its autodown takes it away.
"""

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broadgauge.manifests.files import ManifestFile, to_yaml
from broadgauge.manifests.skypilot.budget import START_S, hold_limit_s, node_price, reserve_s
from broadgauge.manifests.skypilot.clusters import ClusterKey, cluster_name
from broadgauge.manifests.skypilot.scripts import READY, hold_text, setup_text
from broadgauge.manifests.skypilot.task import TaskRequest, bare_task, task
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.platforms.hosts import ssh
from broadgauge.platforms.launch_folders import private
from broadgauge.platforms.skypilot import sky
from broadgauge.platforms.skypilot.ledger import HeldCluster, Ledger
from broadgauge.specs.errors import InputError, PlatformError, RunFolderError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.hosts import Host

Say = Callable[[str], None]
DOWN_TRIES = 3
AGAIN_AFTER_S = 5.0
WORKDIR = "sky_workdir"
"""In the home folder of every node. Source: SkyPilot 0.14.1, skylet/constants.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudRun:
    """What all clusters of a run have in common."""

    experiment: Experiment
    base_folder: Path
    """The experiment's."""
    logs: Path
    ledger: Ledger
    run: str
    """Tells the runs of one experiment apart."""
    clean: sky.Clean
    unix_s: Callable[[], float] = time.time


@dataclass(slots=True, kw_only=True)
class LiveCluster:
    """One that is up."""

    key: ClusterKey
    held: HeldCluster
    hosts: tuple[Host, ...]
    following: sky.Following | None
    """Its job's log; None: an earlier life of the tool launched it."""


def bring_up(around: CloudRun, key: ClusterKey, *, say: Say, show: Say) -> LiveCluster:
    """Raises PlatformError, also where no money is left, and RunFolderError.

    The caller brings down what the ledger has, also after these.
    """
    settings = around.experiment.skypilot
    now_s = around.unix_s()
    spent_usd = around.ledger.spent_usd(now_s) or 0.0
    try:
        limit_s = hold_limit_s(around.experiment, key.nodes, spent_usd=spent_usd)
    except InputError as error:  # at first there was enough: what is measured is stored
        raise PlatformError(error.message, hint=error.hint) from error
    price = node_price(around.experiment)
    held = HeldCluster(
        name=cluster_name(around.experiment.name, f"{around.run}-{int(now_s) % 10**6}", key),
        nodes=key.nodes,
        network_tier=key.network_tier,
        began_unix_s=now_s,
        most_s=limit_s + reserve_s(settings.idle_minutes),
        usd_per_node_hour=None if price is None else price.usd_per_node_hour,
    )
    request = TaskRequest(
        experiment=around.experiment,
        key=key,
        name=held.name,
        setup=setup_text(settings, limit_s, installs=False),
        run=hold_text(limit_s),
        base_folder=str(around.base_folder.absolute()),
    )
    bare = _write(around, f"{held.name}.bare.yaml", bare_task(request))
    whole = _write(around, f"{held.name}.yaml", task(request))
    around.ledger.begin(held)
    say(
        f"cluster {held.name}: {key.nodes} node{'s' * (key.nodes > 1)}, gone after "
        f"{held.most_s / 3600:.3g} h at the latest"
        + (f", at {price.words}" if price is not None else "; no price is known")
    )
    _launch_bare(around, held, bare, show)
    following = _launch(around, held, whole, show)
    try:
        _wait_until_ready(held, following, limit_s)
        hosts = hosts_of(around.experiment, held)
    except BaseException:
        following.end()
        raise
    return LiveCluster(key=key, held=held, hosts=hosts, following=following)


def _write(around: CloudRun, name: str, what: Manifest) -> Path:
    """Raises RunFolderError."""
    path = around.logs / name
    file = ManifestFile(path=name, comment="As `sky launch` was given it.", objects=(what,))
    try:
        around.logs.mkdir(0o700, parents=True, exist_ok=True)
        with open(path, "w", opener=private) as stream:
            stream.write(to_yaml(file))
    except OSError as error:
        raise RunFolderError(f"{path} can't be written: {error.strerror or error}") from error
    return path


def _launch_bare(around: CloudRun, held: HeldCluster, path: Path, show: Say) -> None:
    """The machines and their autodown. Raises PlatformError."""
    following = _follow(around, held, path, show, secrets=())
    try:
        answer = following.wait(held.most_s)
    except BaseException:
        following.end()
        raise
    if answer is None:
        following.end()
        raise PlatformError(f"{held.name}: `sky launch` did not end within {held.most_s:.0f} s")
    if answer.exit_code != 0:
        raise PlatformError(
            f"{held.name}: `sky launch` ended with exit code {answer.exit_code}: "
            f"{answer.last_words}",
            hint=f"all of it: {_log(around, held)}; `sky check` says which clouds you have",
        )


def _launch(around: CloudRun, held: HeldCluster, path: Path, show: Say) -> sky.Following:
    return _follow(around, held, path, show, secrets=around.experiment.skypilot.secrets)


def _follow(
    around: CloudRun, held: HeldCluster, path: Path, show: Say, *, secrets: tuple[str, ...]
) -> sky.Following:
    idle_minutes = around.experiment.skypilot.idle_minutes
    words = sky.launch_words(held.name, path, idle_minutes=idle_minutes, secrets=secrets)
    return sky.Following(words, _log(around, held), show, around.clean)


def _log(around: CloudRun, held: HeldCluster) -> Path:
    return around.logs / f"{held.name}.log"


def _wait_until_ready(held: HeldCluster, following: sky.Following, limit_s: float) -> None:
    """Raises PlatformError."""
    if following.wait_for(READY, limit_s + START_S):
        return
    answer = following.wait(0.0)
    what = "is not ready in time" if answer is None else f"did not get ready: {answer.last_words}"
    raise PlatformError(f"{held.name} {what}", hint="what it printed is in the run's logs")


def hosts_of(experiment: Experiment, held: HeldCluster) -> tuple[Host, ...]:
    """As SkyPilot has written them into ssh's configuration. Raises PlatformError.

    Source: SkyPilot 0.14.1, utils/cluster_utils.py, SSHConfigHelper.
    """
    settings = experiment.skypilot
    names = (held.name, *(f"{held.name}-worker{number}" for number in range(1, held.nodes)))
    folder = None
    if settings.workdir is not None:
        words = ("sh", "-c", f"cd ~/{WORKDIR} && pwd")
        found = ssh.run(held.name, words, b"", sky.ASK_LIMIT_S)
        folder = found.output.decode(errors="replace").strip() or None
        if found.exit_code != 0 or folder is None:
            raise PlatformError(f"{held.name}: there is no ~/{WORKDIR}: {found.errors.strip()}")
    return tuple(Host(ssh=name, python=settings.python, working_folder=folder) for name in names)


def find_again(around: CloudRun, key: ClusterKey) -> LiveCluster | None:
    """The cluster that an earlier life of the tool has left, where it is still there.

    Raises PlatformError where nobody can say.
    """
    for held in around.ledger.open:
        there = sky.is_there(sky.ask(sky.status_words(held.name), sky.ASK_LIMIT_S, around.clean))
        if there is None:
            raise PlatformError(
                f"`sky status` does not say whether cluster {held.name} is there",
                hint=f"`{shlex.join([sky.COMMAND, *sky.status_words(held.name)])}` by hand",
            )
        if not there:
            around.ledger.end(held.name, around.unix_s())
        elif held.is_of(key):
            hosts = hosts_of(around.experiment, held)
            return LiveCluster(key=key, held=held, hosts=hosts, following=None)
    return None


def bring_down(around: CloudRun, held: HeldCluster, say: Say) -> bool:
    """Have its machines end; False: nobody knows whether they did, and it is said."""
    trouble = "it did not end in time"
    for number in range(DOWN_TRIES):
        if number:
            time.sleep(AGAIN_AFTER_S)
        answer = sky.ask(sky.down_words(held.name), sky.DOWN_LIMIT_S, around.clean)
        if answer is not None:
            trouble = answer.last_words
        asked = sky.ask(sky.status_words(held.name), sky.ASK_LIMIT_S, around.clean)
        if sky.is_there(asked) is False:
            now_s = around.unix_s()
            around.ledger.end(held.name, now_s)
            say(cost_words(around, held, now_s))
            return True
    say(
        f"cluster {held.name} MAY STILL RUN AND COST: `sky down` did not bring it down "
        f"({trouble}). `sky down {held.name}` by hand; it brings itself down at the latest "
        f"{held.most_s / 3600:.3g} h after it began"
    )
    return False


def cost_words(around: CloudRun, held: HeldCluster, now_s: float) -> str:
    """What it and the run have cost by now."""
    usd, total_usd = held.usd(now_s), around.ledger.spent_usd(now_s)
    words = f"cluster {held.name} is down, after {held.held_s(now_s) / 60:.0f} min"
    if usd is None or total_usd is None:
        return f"{words}; what it cost is not known: no price is (`cost`)"
    most_usd = around.experiment.skypilot.max_cost_usd
    limit = "" if most_usd is None else f" of ${most_usd:.2f}"
    return f"{words}: about ${usd:.2f}, the run so far ${total_usd:.2f}{limit}"
