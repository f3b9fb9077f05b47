"""Can this user, on this kernel, build an emulated cluster? If not, why, and what is the fix?

The answer comes from trying the whole chain in a child process: unshare alone succeeds on
distributions that then refuse the first veth.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from broadgauge.agent.emulated.ability_fixes import BUSY_FIX, find_fix
from broadgauge.messages.waiting_limits import waiting_limit_s

_LIMIT_S = waiting_limit_s(20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """What the kernel grants this user."""

    is_possible: bool
    as_root: bool
    """True where no user namespace is needed."""
    has_htb: bool
    """Rates can be shaped, also above 4 GB/s."""
    has_netem: bool
    """Delay and loss can be added."""
    has_own_sysfs: bool
    """Nodes see only their own NICs in /sys."""
    kernel: str
    """Its release, as `uname -r` says it."""
    congestion_control: str | None
    """TCP's in the nodes; None where no node could be made."""
    reason: str | None
    """Why not, in words; None where it is possible."""
    fix: str | None
    """What to do about it, exactly; None where it is possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbilityTrial:
    """What the child process found out."""

    as_root: bool
    has_htb: bool = False
    has_netem: bool = False
    has_own_sysfs: bool = False
    congestion_control: str | None = None
    step: str | None = None
    detail: str | None = None
    error_number: int | None = None
    is_cut_off: bool = False
    """It did not end in time, so nothing was refused."""


def probe_ability() -> Ability:
    """Try it: namespaces, mounts, a veth pair, HTB above 4 GB/s, netem. Takes about 0.5 s."""
    trial = _run_trial()
    kernel = os.uname().release
    reason = None if trial.step is None else f"{trial.step}: {trial.detail}"
    fix = None
    if trial.step is not None:
        fix = BUSY_FIX if trial.is_cut_off else find_fix(trial.step, trial.error_number)
    return Ability(
        is_possible=trial.step is None,
        as_root=trial.as_root,
        has_htb=trial.has_htb,
        has_netem=trial.has_netem,
        has_own_sysfs=trial.has_own_sysfs,
        kernel=kernel,
        congestion_control=trial.congestion_control,
        reason=reason,
        fix=fix,
    )


def _run_trial() -> AbilityTrial:
    """Run the trial in a fresh interpreter of one thread, which the namespaces die with."""
    source = str(Path(__file__).parents[3])
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "broadgauge.agent.emulated.ability_trial"]
    as_root = os.geteuid() == 0
    try:
        child = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        detail = f"too busy to tell, no end in {_LIMIT_S:.0f} s"
        return AbilityTrial(
            as_root=as_root, step="try the namespaces", detail=detail, is_cut_off=True
        )
    for line in child.stdout.splitlines():
        if line.startswith("{"):
            return AbilityTrial(**json.loads(line))
    detail = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return AbilityTrial(
        as_root=as_root,
        step="try the namespaces",
        detail=f"exit status {child.returncode}: {detail}",
    )


def trial_to_json(trial: AbilityTrial) -> str:
    """How does the child process report? One line."""
    return json.dumps(asdict(trial))
