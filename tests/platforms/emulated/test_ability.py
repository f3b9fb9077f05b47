"""Does the probe say what is possible, and name the right fix where it is not?"""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broadgauge.agent.emulated import ability_fixes
from broadgauge.agent.emulated.ability import probe_ability
from broadgauge.agent.emulated.ability_fixes import find_fix
from broadgauge.messages.waiting_limits import waiting_limit_s


@pytest.mark.namespaces
def test_probe_finds_this_kernel_able() -> None:
    ability = probe_ability()
    assert ability.is_possible, ability
    assert ability.has_htb
    assert ability.has_own_sysfs
    assert ability.as_root == (os.geteuid() == 0)
    assert ability.kernel == os.uname().release
    assert (ability.reason, ability.fix) == (None, None)


POWERLESS = """
import json, os
from dataclasses import asdict
from pathlib import Path
from broadgauge.agent.emulated.ability import probe_ability
from broadgauge.agent.emulated.syscalls import CloneFlag, drop_every_capability, unshare
uid = os.getuid()
unshare(CloneFlag.NEWUSER)
Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
Path("/proc/sys/user/max_user_namespaces").write_text("0")
drop_every_capability()
print(json.dumps(asdict(probe_ability())))
"""


@pytest.mark.namespaces
def test_probe_gives_reason_and_fix_where_namespaces_are_refused() -> None:
    """A namespace that allows no further ones stands for a machine that grants none."""
    child = subprocess.run(
        [sys.executable, "-c", POWERLESS], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    ability = json.loads(child.stdout)
    assert not ability["is_possible"]
    assert not ability["as_root"]
    assert "enter the cluster's user namespace" in ability["reason"]
    assert ability["fix"] == ability_fixes.MAX_NAMESPACES_FIX


@pytest.mark.parametrize(
    ("refusal", "sysctl", "fix"),
    [
        (
            ("make the veth pair n0e0", errno.EPERM),
            "apparmor_restrict_unprivileged_userns=1",
            "APPARMOR",
        ),
        (
            ("enter the cluster's user namespace", errno.EPERM),
            "unprivileged_userns_clone=0",
            "DEBIAN",
        ),
        (("enter the cluster's user namespace", errno.EPERM), "", "SECURITY_MODULE"),
        (("enter the cluster's user namespace", errno.ENOSPC), "", "MAX_NAMESPACES"),
        (("enter the cluster's user namespace", errno.EINVAL), "", "USER_NAMESPACES"),
        (("add HTB to interface 2", errno.ENOENT), "", "HTB"),
        (("give HTB of interface 2 netem", errno.ENOENT), "", "NETEM"),
        (("add u32 filters to interface 2", errno.ENOENT), "", "FILTER"),
        (("make the VXLAN device vxlan0", errno.EOPNOTSUPP), "", "VXLAN"),
        (("add a counter to interface 2", errno.ENOENT), "", "COUNTER"),
        (("make the veth pair n0e0", errno.EOPNOTSUPP), "", "VETH"),
        (("mount the cluster's own /proc", errno.EPERM), "", "PROC"),
        (("try the namespaces", None), "", "INSTALL"),
    ],
)
def test_each_refusal_has_its_fix(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusal: tuple[str, int | None],
    sysctl: str,
    fix: str,
) -> None:
    """The probe runs elsewhere; here is only what is made of its answer."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if sysctl:
        name, value = sysctl.split("=")
        path = tmp_path / "proc/sys/kernel" / name
        path.parent.mkdir(parents=True)
        path.write_text(value + "\n")
    assert find_fix(*refusal, root=tmp_path) == getattr(ability_fixes, f"{fix}_FIX")


def test_container_is_told_its_flags(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    fix = find_fix("enter the cluster's namespaces", errno.EPERM, root=tmp_path)
    assert "seccomp=unconfined" in fix


def test_a_trial_without_an_end_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 20.0)

    monkeypatch.setattr(subprocess, "run", hang)
    limit_s = waiting_limit_s(20.0)
    ability = probe_ability()
    assert not ability.is_possible
    assert ability.reason == f"try the namespaces: too busy to tell, no end in {limit_s:.0f} s"
    assert ability.fix == ability_fixes.BUSY_FIX
