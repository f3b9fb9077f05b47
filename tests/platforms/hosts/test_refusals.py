"""`platform: hosts`: what is said, before anything is measured, of hosts that can't be used?"""

import sys

import pytest
from tests.platforms.hosts.machines import Tool, experiment, host, wrapped_python

pytestmark = [pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd]

OLD = "import sys; sys.version = '3.9.18 (fake)'; sys.version_info = (3, 9, 18, 'final', 0)"
TORCH = "Metadata-Version: 2.1\nName: torch\nVersion: 1.13.9\n"


def refusal(tool: Tool, *hosts: str, shapes: str = "2x1", code: int = 4) -> str:
    """On one line."""
    tool.write(experiment(*hosts, shapes=shapes))
    said = " ".join(tool.run("run", "e.yaml", code=code).split())
    assert "Traceback" not in said
    assert not "".join(path.read_text() for path in tool.folder.glob("runs/*/records.jsonl"))
    return said


def test_all_hosts_that_can_not_be_asked_are_named_at_once(tool: Tool) -> None:
    script = f"""[ "$1" = -c ] || exec $PYTHON "$@"; exec $PYTHON -c "{OLD}
$2" """
    wrapped_python(tool.machines.folder, "old", script)
    said = refusal(
        tool,
        *map(host, ("nowhere", "refused", "stranger")),
        host("node0", "/no/python"),
        host("node1", "/run/shared/old"),
    )
    assert "5 of 5 hosts can't be used" in said
    for name, words, hint in (
        ("nowhere", "No route to host", "is the machine up"),
        ("refused", "Permission denied", "add your key there"),
        ("stranger", "Host key verification failed", "ssh-keygen -R"),
    ):
        assert f"{name} can't be reached over ssh" in said
        assert words in said
        assert hint in said
    assert "node0: /no/python can't be run" in said
    assert "node1: /run/shared/old is Python 3.9.18, and 3.10 or newer is needed" in said


def test_another_torch_on_one_host(tool: Tool) -> None:
    folder = tool.machines.folder / "plant" / "torch-1.13.9.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(TORCH)
    wrapped_python(
        tool.machines.folder, "planted", 'PYTHONPATH=/run/shared/plant exec $PYTHON "$@"'
    )
    said = refusal(tool, host("node0"), host("node1", "/run/shared/planted"))
    assert "torch differs: node0 has " in said
    assert "node1 has 1.13.9" in said


def test_one_machine_twice(tool: Tool) -> None:
    said = refusal(tool, host("node1"), host("noisy"))
    assert "node1 and noisy are one machine" in said


def test_more_nodes_than_hosts(tool: Tool) -> None:
    said = refusal(tool, shapes="3x1", code=2)
    assert "3" in said
    assert "2" in said


def test_a_working_folder_that_is_not_there(tool: Tool) -> None:
    said = refusal(tool, host("node0"), host("node1", working_folder="/no/such/folder"))
    assert "node1: " in said
    assert "/no/such/folder: No such file or directory" in said


def test_a_full_disk(tool: Tool) -> None:
    tool.machines.on("node1", "mount", "-o", "remount,size=8k", "/run/temporary")
    try:
        said = refusal(tool)
    finally:
        tool.machines.on("node1", "mount", "-o", "remount,size=50%", "/run/temporary")
    assert "node1: " in said
    assert "No space left on device" in said


def test_a_dry_run_starts_nothing_and_shows_what_each_rank_is_given(tool: Tool) -> None:
    tool.write(experiment())
    said = tool.run("run", "e.yaml", "--dry-run")
    assert sys.executable in said
    assert not (tool.folder / "runs").exists()
