"""Holds what we write against SkyPilot itself: its reader of tasks, its command line's parser."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from tests.manifests.skypilot import experiments as made
from tests.manifests.skypilot.task_model import read_task
from tests.pythons import skypilot_python

from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.skypilot.clusters import cluster_name, clusters_of
from broadgauge.manifests.skypilot.scripts import hold_text, setup_text
from broadgauge.manifests.skypilot.task import TaskRequest, bare_task, task
from broadgauge.manifests.yaml_text import yaml_text
from broadgauge.platforms.skypilot import sky
from broadgauge.running.experiments import example_names, load
from broadgauge.running.rendering_skypilot import ON_SKYPILOT, render_skypilot
from broadgauge.specs.experiment import Experiment

pytestmark = [pytest.mark.skypilot, pytest.mark.alone]

READ_TASKS = """
import json, sys, yaml
import sky
told = []
for path in sys.argv[1:]:
    with open(path) as file:
        config = yaml.safe_load(file)
    secrets = [(name, "a value") for name in config.get("secrets", {})]
    try:
        if secrets:
            task = sky.Task.from_yaml_config(config, secrets_overrides=secrets)
        else:
            task = sky.Task.from_yaml(path)
        (found,) = task.resources
        told.append({
            "name": task.name, "num_nodes": task.num_nodes,
            "tier": found.network_tier and found.network_tier.value,
            "down": found.autostop_config.down, "idle": found.autostop_config.idle_minutes,
            "wait_for": found.autostop_config.wait_for.value,
            "setup": task.setup, "run": task.run,
            "mounts": sorted([*(task.file_mounts or {}), *task.storage_mounts]),
            "volumes": task.volumes,
        })
    except Exception as error:
        told.append({"refused": f"{type(error).__name__}: {error}"})
print("\\n" + json.dumps(told))
"""
PARSE = """
import json, sys
from sky.client.cli import command
for words in json.load(sys.stdin):
    found = command.cli.commands[words[0]]
    context = found.make_context(words[0], list(words[1:]))
    told = {name: value for name, value in context.params.items() if not callable(value)}
    print("\\n" + json.dumps(told, default=str))
"""


def ask_skypilot(script: str, *arguments: str, told: str = "") -> list[Any]:
    """What the script printed as JSON, one value a line."""
    ended = subprocess.run(
        [skypilot_python(), "-c", script, *arguments],
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = [line for line in ended.stdout.splitlines() if line[:1] in ("[", "{")]
    return [json.loads(line) for line in lines]


def read_by_skypilot(texts: list[str], folder: Path) -> list[dict[str, Any]]:
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.yaml")
        paths[-1].write_text(text)
    return list(ask_skypilot(READ_TASKS, *map(str, paths))[-1])


def some_experiments(number: int) -> list[Experiment]:
    """As hypothesis makes them, for one process that imports SkyPilot once."""
    found: list[Experiment] = []

    @settings(
        max_examples=number,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @made.given_experiment
    def collect(experiment: Experiment) -> None:
        found.append(experiment)

    collect()
    return found


def texts_of(experiment: Experiment) -> list[str]:
    """Rendered files, and what a run launches."""
    files = [to_yaml(file) for file in made.rendered(experiment).files if file.text is None]
    for cluster in clusters_of(made.cases_of(experiment)):
        request = TaskRequest(
            experiment=experiment,
            key=cluster.key,
            name=cluster_name(experiment.name, "abc123-1", cluster.key),
            setup=setup_text(experiment.skypilot, 600, installs=False),
            run=hold_text(600),
            base_folder="/tmp",
        )
        files += [yaml_text(task(request)), yaml_text(bare_task(request))]
    return files


def test_skypilot_reads_each_task_as_it_is_meant(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    texts = [
        # What is sent from this machine has to be there for SkyPilot, too.
        text.replace("./conf", str(tmp_path / "conf")).replace("/tmp/conf", str(tmp_path / "conf"))
        for experiment in some_experiments(60)
        for text in texts_of(experiment)
    ]
    assert len(texts) > 150
    for text, seen in zip(texts, read_by_skypilot(texts, tmp_path), strict=True):
        assert "refused" not in seen, (seen, text)
        meant = read_task(text)
        assert seen["name"] == meant.name
        assert seen["num_nodes"] == meant.num_nodes
        assert seen["tier"] == meant.resources.network_tier
        assert (seen["down"], seen["wait_for"]) == (True, "jobs")
        assert seen["idle"] == meant.resources.autostop.idle_minutes
        assert (seen["setup"], seen["run"]) == (meant.setup, meant.run)
        assert seen["mounts"] == sorted(meant.file_mounts)
        assert seen["volumes"] == meant.volumes


def test_skypilot_reads_the_examples(tmp_path: Path) -> None:
    names = [name for name in example_names() if load(name, []).experiment.platform == "skypilot"]
    assert len(names) >= 4
    texts = {
        f"{name}/{file.path}": to_yaml(file)
        for name in names
        for file in render_skypilot(load(name, (ON_SKYPILOT,))).files
        if file.text is None
    }
    seen = read_by_skypilot(list(texts.values()), tmp_path)
    refused = [each for each in zip(texts, seen, strict=True) if "refused" in each[1]]
    assert refused == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("network_teir: best", "network_teir"),
        ("network_tier: fast", "Invalid network_tier"),
        ("disk_tier: fast", "disk_tier"),
        ("autostop: {idle_minutes: -1}", "idle_minutes"),
    ],
)
def test_what_skypilot_refuses_our_model_refuses(tmp_path: Path, line: str, words: str) -> None:
    text = f"name: a\nnum_nodes: 1\nresources:\n  {line}\n"
    (seen,) = read_by_skypilot([text], tmp_path)
    assert words in seen["refused"]
    with pytest.raises(ValueError, match="validation error"):
        read_task(text)


def test_every_argument_passes_skypilot_s_own_parser(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text("run: true\n")
    asked = [
        sky.launch_words("bg-a-1", path, idle_minutes=7, secrets=("HOME",)),
        sky.down_words("bg-a-1"),
        sky.status_words("bg-a-1"),
    ]
    launch, down, status = ask_skypilot(PARSE, told=json.dumps(asked))
    assert launch["cluster"] == "bg-a-1"
    assert launch["idle_minutes_to_autostop"] == 7
    assert (launch["down"], launch["yes"], launch["wait_for"]) == (True, True, "jobs")
    assert launch["entrypoint"] == [str(path)]
    assert launch["secret"][0][0] == "HOME"
    assert not launch["detach_run"], "its log is followed"
    assert (down["clusters"], down["yes"], down["purge"]) == (["bg-a-1"], True, False)
    assert (status["clusters"], status["refresh"]) == (["bg-a-1"], True)
    assert status["output_format"] == "json"


def test_names_of_clusters_are_skypilot_s() -> None:
    script = (
        "import json, sys\nfrom sky.utils import common_utils\n"
        "for name in sys.argv[1:]:\n    common_utils.check_cluster_name_is_valid(name)\n"
        "    common_utils.make_cluster_name_on_cloud(name, 63)\nprint(json.dumps([1]))"
    )
    names = [
        cluster_name(experiment, run, cluster.key)
        for experiment in ("a", "gpt2.networks_long-name-of-an-experiment", "9-lives-", "a" * 63)
        for run in ("", "abc123-123456")
        for cluster in clusters_of(made.cases_of(made.experiment_of(shapes=("1x8", "64x8"))))
    ]
    assert len(set(names)) == len(names)
    assert ask_skypilot(script, *names)
