"""Proves what SkyPilot is given: one task a cluster, as its schema has them, and nothing secret."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.manifests.skypilot.experiments import (
    BUCKET,
    experiment_of,
    experiments,
    rendered,
)
from tests.manifests.skypilot.task_model import Mount, Task, read_task

from broadgauge.engine.plan import make_plan
from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.skypilot.budget import hold_limit_s, node_price, reserve_s
from broadgauge.manifests.skypilot.clusters import clusters_of
from broadgauge.manifests.skypilot.scripts import alone_text
from broadgauge.platforms.skypilot.devices import skypilot_devices
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.reading import read_experiment


def tasks_of(experiment: Experiment) -> dict[str, Task]:
    """By file."""
    return {
        file.path: read_task(to_yaml(file))
        for file in rendered(experiment).files
        if file.text is None
    }


def embedded(task: Task) -> str:
    """The experiment that its first node runs."""
    assert task.run is not None
    begin, _, rest = task.run.partition("<<'BROADGAUGE_EXPERIMENT'\n")
    assert begin
    return rest.partition("BROADGAUGE_EXPERIMENT\n")[0]


def test_each_number_of_nodes_and_tier_is_a_cluster() -> None:
    found = tasks_of(experiment_of(shapes=("1x8", "2x4", "2x8")))
    assert list(found) == ["1-node-standard.yaml", "2-nodes-standard.yaml", "2-nodes-best.yaml"]
    tiers = [(task.num_nodes, task.resources.network_tier) for task in found.values()]
    assert tiers == [(1, None), (2, None), (2, "best")]
    told = read_experiment(embedded(found["2-nodes-best.yaml"]), "e")
    assert [each.name for each in told.networks] == ["infiniband"]
    assert told.cluster.shapes == ("2x4", "2x8")


@settings(max_examples=10, deadline=None)
@given(experiments)
def test_a_task_is_as_the_schema_has_it_and_runs_its_part(experiment: Experiment) -> None:
    found = tasks_of(experiment)
    plan = make_plan(experiment, {"skypilot": skypilot_devices(experiment)})
    assert len(found) == len(clusters_of(plan.cases))
    labels = []
    for task in found.values():
        assert task.resources.autostop.down
        assert task.resources.autostop.idle_minutes == experiment.skypilot.idle_minutes
        assert task.secrets == dict.fromkeys(experiment.skypilot.secrets)
        assert task.envs == experiment.skypilot.envs
        part = read_experiment(embedded(task), "e").model_copy(update={"platform": "skypilot"})
        labels += [each.name for each in part.networks]
    used = [case.link.name for case in plan.cases if case.link is not None]
    assert sorted(set(labels)) == sorted(set(used))


def test_mounts_are_written_as_skypilot_writes_them() -> None:
    cached = {"transfers": 8, "vfs_cache_max_size": "200G"}
    task = tasks_of(
        experiment_of(
            file_mounts={
                "/model": {"source": BUCKET, "mode": "MOUNT"},
                "/checkpoints": {"source": BUCKET, "mode": "MOUNT_CACHED", "mount_cached": cached},
                "/conf": "./conf",
            },
            volumes={"/data": "claim"},
        )
    )["2-nodes-best.yaml"]
    assert task.file_mounts["/model"] == Mount(source=BUCKET, mode="MOUNT")
    mount = task.file_mounts["/checkpoints"]
    assert isinstance(mount, Mount)
    assert mount.config is not None
    assert mount.config.mount_cached.model_dump(exclude_none=True) == cached
    assert task.file_mounts["/conf"] == "./conf"
    assert task.volumes == {"/data": "claim"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"envs": {"HF_TOKEN": "hf_abc"}}, "is a secret"),
        ({"setup": "export HF_TOKEN=hf_abcdef"}, "holds a secret"),
        ({"setup": "git clone https://me:pass@host/a"}, "holds a secret"),
        ({"file_mounts": {"/m": "https://me:pass@host/a"}}, "credentials in its URL"),
        ({"file_mounts": {"/m": {"source": "./here", "mode": "MOUNT"}}}, "is no bucket"),
        ({"file_mounts": {"/etc": "./conf"}}, "hides what every program needs"),
        ({"file_mounts": {"/m": BUCKET}, "volumes": {"/m/": "v"}}, "among `file_mounts`"),
        ({"results": "/m"}, "outlives the cluster"),
        ({"results": "/m/x", "file_mounts": {"/m": "./copied"}}, "outlives the cluster"),
        ({"envs": {"SKYPILOT_NODE_RANK": "1"}}, "SkyPilot's own"),
        ({"secrets": ["A"], "envs": {"A": "1"}}, "among `secrets`"),
    ],
)
def test_what_would_go_wrong_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        experiment_of(**said)
    assert words in str(refused.value)
    assert "hf_abc" not in str(refused.value.errors(include_input=False))


def test_a_secret_s_value_is_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_never_written")
    experiment = experiment_of(secrets=["HF_TOKEN"], setup="huggingface-cli login $HF_TOKEN")
    text = "".join(to_yaml(file) for file in rendered(experiment).files)
    assert "hf_never_written" not in text
    assert "--secret HF_TOKEN" in text


@settings(deadline=None)
@given(
    most_usd=st.floats(1, 1e5),
    spent_usd=st.floats(0, 1e4),
    nodes=st.integers(1, 64),
    idle_minutes=st.integers(1, 120),
)
def test_no_cluster_is_held_longer_than_its_money_lasts(
    most_usd: float, spent_usd: float, nodes: int, idle_minutes: int
) -> None:
    experiment = experiment_of(max_cost_usd=most_usd, idle_minutes=idle_minutes)
    price = node_price(experiment)
    assert price is not None
    try:
        limit_s = hold_limit_s(experiment, nodes, spent_usd=spent_usd)
    except InputError:
        left_s = (most_usd - spent_usd) / (price.usd_per_node_hour * nodes) * 3600
        assert left_s < reserve_s(idle_minutes) + 61
        return
    paid_usd = price.usd_per_node_hour * nodes * (limit_s + reserve_s(idle_minutes)) / 3600
    assert spent_usd + paid_usd <= most_usd * (1 + 1e-9)
    assert limit_s <= experiment.skypilot.max_held_s


def test_rendered_tasks_together_cost_no_more_than_the_limit() -> None:
    most_usd = 400.0
    experiment = experiment_of(shapes=("1x8", "2x8", "4x8"), max_cost_usd=most_usd)
    price = node_price(experiment)
    assert price is not None
    total_usd = 0.0
    for task in tasks_of(experiment).values():
        assert task.setup is not None
        limit_s = int(task.setup.partition("(sleep ")[2].partition(";")[0])
        assert task.resources.max_hourly_cost == price.usd_per_node_hour
        held_s = limit_s + reserve_s(experiment.skypilot.idle_minutes)
        total_usd += price.usd_per_node_hour * task.num_nodes * held_s / 3600
    assert 0.99 * most_usd < total_usd <= most_usd


def test_a_limit_of_cost_without_a_price_is_refused() -> None:
    with pytest.raises(InputError, match="needs a price"):
        rendered(experiment_of(accelerators="X9000:8", max_cost_usd=100))


@pytest.mark.parametrize("results", [None, "/bucket/runs of 'mine'"])
def test_the_first_node_alone_runs_the_experiment_on_all(
    tmp_path: Path, results: str | None
) -> None:
    """By a shell, with a Python that says what it was given."""
    python = tmp_path / "my python"
    python.write_text('#!/bin/sh\nmkdir -p runs/one\nprintf "%s\\n" "$@" >>given\nexit 3\n')
    python.chmod(0o755)
    kept = (
        {} if results is None else {"file_mounts": {"/bucket": {"source": BUCKET, "mode": "MOUNT"}}}
    )
    said = experiment_of(python=str(python), results=results, **kept).skypilot
    text = alone_text(said, "name: it's\n", 600)
    text = text.replace("/bucket", str(tmp_path / "bucket")).replace("~/", f"{tmp_path}/")
    subprocess.run(f"date +%s >{tmp_path}/.broadgauge-cluster", shell=True, check=True)
    codes = [
        subprocess.run(
            ["bash", "-c", text],
            cwd=tmp_path,
            env={
                "PATH": "/usr/bin:/bin",
                "SKYPILOT_NODE_RANK": rank,
                "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
            },
            check=False,
        ).returncode
        for rank in ("1", "0")
    ]
    assert codes == [0, 3]
    given_words = (tmp_path / "given").read_text().splitlines()
    assert given_words[:6] == [
        *("-m", "broadgauge", "run", "broadgauge-experiment.yaml", "--on", "hosts")
    ]
    host = f"python: '{python}', working_folder: '{tmp_path}'}}"
    assert given_words[7] == f"hosts=[{{ssh: '10.0.0.1', {host}, {{ssh: '10.0.0.2', {host}]"
    assert (tmp_path / "broadgauge-experiment.yaml").read_text() == "name: it's\n"
    if results is not None:
        assert (tmp_path / "bucket" / "runs of 'mine'" / "one").is_dir()
