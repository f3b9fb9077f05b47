"""Does `broadgauge init --from-cluster` say plainly what it wrote, and what it could not know?"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.driving import run_command
from tests.platforms.kubernetes.fake_api import Answer, FakeApi, fake_api, listed, refused
from tests.platforms.kubernetes.inventory.made_up import answers

from broadgauge.running.first_networks import MAP_FILE
from broadgauge.specs.errors import ExitCode

INIT = ("init", "--from-cluster")


@pytest.fixture
def vpc() -> Iterator[FakeApi]:
    """A cluster whose second NICs have addresses of the fabric."""
    told = answers("vpc")
    with fake_api() as started:
        names = ("k8s.cni.cncf.io", "config.openshift.io")
        groups = {"groups": [{"name": name} for name in names]}
        for path, body in (
            ("/apis", groups),
            ("/version", told["version"]),
            ("/api/v1/nodes", told["nodes"]),
            ("/api/v1/namespaces/training", told["namespace"]),
            ("/apis/k8s.cni.cncf.io/v1/network-attachment-definitions", told["attachments"]),
            ("/apis/config.openshift.io/v1/clusterversions/version", told["openshift"]),
        ):
            started.script("GET", path, Answer(body=body))
        yield started


@pytest.fixture
def kubeconfig(vpc: FakeApi, tmp_path: Path) -> str:
    """With two contexts, of the same cluster."""
    context = {"cluster": "it", "namespace": "training"}
    found = {
        "current-context": "gpus",
        "contexts": [{"name": name, "context": context} for name in ("gpus", "staging")],
        "clusters": [{"name": "it", "cluster": {"server": vpc.url}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(found))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.mkdir()
    return path


def test_the_file_and_its_map_are_written_once_and_planned(kubeconfig: str, folder: Path) -> None:
    made = run_command(*INIT, "mine.yaml", folder=folder, KUBECONFIG=kubeconfig)
    assert made.returncode == 0, made.stderr
    assert made.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == ["mine.yaml", MAP_FILE]
    assert "missing    kubernetes.image: " in made.stderr
    assert "wrote      mine.yaml\nwrote      " + MAP_FILE in made.stderr
    assert "run mine.yaml --dry-run" in made.stderr
    text = (folder / "mine.yaml").read_text()
    assert text.startswith("# For gpus, as its API describes it:\n")
    assert "- kubernetes.image: " in text
    assert "\nnote       networks.subnet-rdma-port: whereabouts gives its pods" in made.stderr
    taken = run_command("run", "mine.yaml", "--dry-run", folder=folder)
    assert taken.returncode == 0, taken.stderr
    again = run_command(*INIT, "mine.yaml", folder=folder, KUBECONFIG=kubeconfig)
    assert again.returncode == ExitCode.BAD_INPUT
    assert "is there already, and is kept" in again.stderr
    other = run_command(*INIT, "other.yaml", folder=folder, KUBECONFIG=kubeconfig)
    assert f"`{MAP_FILE}` is there already" in other.stderr
    assert "name a FILE in another folder" in other.stderr
    assert not (folder / "other.yaml").exists()  # without its map it is nothing


def test_a_file_that_is_there_is_refused_before_the_cluster_is_asked(
    vpc: FakeApi, kubeconfig: str, folder: Path
) -> None:
    (folder / "mine.yaml").write_text("mine")
    (folder / "away.yaml").symlink_to("nowhere")
    for name in ("mine.yaml", "away.yaml"):
        made = run_command(*INIT, name, folder=folder, KUBECONFIG=kubeconfig)
        assert made.returncode == ExitCode.BAD_INPUT
        assert f"`{name}` is there already, and is kept" in made.stderr
    assert vpc.asked == []
    assert (folder / "mine.yaml").read_text() == "mine"


def test_a_mistyped_namespace_is_said_with_what_there_is(
    vpc: FakeApi, kubeconfig: str, folder: Path
) -> None:
    spaces = ({"metadata": {"name": name}} for name in ("default", "training"))
    vpc.script("GET", "/api/v1/namespaces", listed(*spaces))
    words = (*INIT, "--namespace", "trianing", "-")
    made = run_command(*words, folder=folder, KUBECONFIG=kubeconfig)
    said = "kubernetes.namespace: trianing is not there; did you mean `training`?"
    assert f"missing    {said}" in made.stderr
    assert said in made.stdout


def test_printed_it_is_the_experiment_alone(kubeconfig: str, folder: Path) -> None:
    words = (*INIT, "--context", "staging", "--namespace", "training", "-")
    made = run_command(*words, folder=folder, KUBECONFIG=kubeconfig)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("# For staging, as its API describes it:\n")
    assert "# Of the context staging. " in made.stdout
    assert f"missing    {MAP_FILE}: name a FILE" in made.stderr
    assert list(folder.iterdir()) == []


def test_who_may_read_nothing_gets_a_file_that_says_so(
    vpc: FakeApi, kubeconfig: str, folder: Path
) -> None:
    for path in ("/apis", "/version", "/api/v1/nodes", "/api/v1/namespaces/training"):
        vpc.script("GET", path, refused(403, "Forbidden"))
    made = run_command(*INIT, folder=folder, KUBECONFIG=kubeconfig)
    assert made.returncode == 0, made.stderr
    assert "missing    nodes: unknown, you may not list nodes" in made.stderr
    assert "- nodes: unknown, you may not list nodes" in (folder / "experiment.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("init", "--namespace", "x"), "--context and --namespace belong to --from-cluster"),
        ((*INIT, "--context", "gpsu"), "did you mean `gpus`?"),
        ((*INIT, "--context", "nothing-like-it"), "known: gpus, staging"),
        ((*INIT, "--namespace", "No Name"), "`No Name` is no name of a namespace"),
    ],
)
def test_what_is_mistyped_is_said_with_what_there_is(
    kubeconfig: str, folder: Path, words: tuple[str, ...], said: str
) -> None:
    made = run_command(*words, folder=folder, KUBECONFIG=kubeconfig)
    assert made.returncode == ExitCode.BAD_INPUT
    assert said in made.stderr
    assert list(folder.iterdir()) == []


def test_without_a_kubeconfig_or_a_server_nothing_is_written(folder: Path) -> None:
    none = run_command(*INIT, folder=folder, KUBECONFIG="nowhere")
    assert none.returncode == ExitCode.BAD_INPUT
    assert "there is no kubeconfig nowhere" in none.stderr
    cluster = {"name": "it", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "gpus", "context": {"cluster": "it"}}
    config = {"current-context": "gpus", "contexts": [context], "clusters": [cluster]}
    (folder / "config").write_text(json.dumps(config))
    away = run_command(*INIT, folder=folder, KUBECONFIG="config")
    assert away.returncode == ExitCode.PLATFORM_REFUSED
    assert "reading what the cluster has: the API server does not answer" in away.stderr
    assert [path.name for path in folder.iterdir()] == ["config"]


def test_without_the_extra_one_line_installs_it(kubeconfig: str, folder: Path) -> None:
    hidden = "import sys; sys.modules['httpx2'] = None; sys.argv[0] = 'broadgauge'; "
    script = hidden + "from broadgauge.cli.main import entry_point; entry_point()"
    made = subprocess.run(
        [sys.executable, "-c", script, *INIT],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == ExitCode.PLATFORM_REFUSED, made.stderr
    assert "pip install 'broadgauge[kubernetes]'" in made.stderr
    assert "Traceback" not in made.stderr
