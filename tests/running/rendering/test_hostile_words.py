"""Proves that no name and no value of a user's breaks out of a manifest, and no secret gets in."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.costly import costly
from tests.running.rendering.experiments import (
    EXPERIMENT,
    container_of,
    objects_of,
    rendered,
    variables_of,
)

from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.names import MOST_NAME_CHARACTERS
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.rendering.experiment import RenderedExperiment, render_experiment
from broadgauge.specs.errors import BroadgaugeError, InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes.names import LABEL

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=24)
ODD = st.sampled_from(
    [
        *("no", "$(HOME)", "$$(X)", "`id`", "$(id)", "$", '"', "'; rm -rf /", "- x", "{}", "#"),
        *("a\nb: c\n---\n", "\u2028", "0o14", "=1+1"),
    ]
)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,7}", fullmatch=True)


def experiment_of(names: tuple[str, str, str], words: list[str], value: str) -> Experiment:
    """Names are the experiment's, the workload's and the network's; `value` is a variable's."""
    return Experiment.model_validate(
        {
            "name": names[0],
            "platform": "kubernetes",
            "cluster": {"shapes": ["1x1", "2x1"], "device": "cpu"},
            "kubernetes": {"name": "x", "annotations": {"a": value}},
            "networks": [{"name": names[2], "kubernetes": "pod"}],
            "workloads": [
                {
                    "kind": "command",
                    "name": names[1],
                    "command": ["/opt/train.py", *words],
                    "environment": {"ODD": value},
                    "metrics": [{"name": "step_time_s", "json_key": "s"}],
                }
            ],
        }
    )


def render(experiment: Experiment) -> RenderedExperiment:
    loaded = LoadedExperiment(experiment=experiment, source="e.yaml", folder=Path("/"))
    return render_experiment(loaded)


@costly(60)
@given(st.tuples(NAMES, NAMES, NAMES), st.lists(WORDS | ODD, max_size=4), WORDS | ODD)
def test_what_users_write_arrives_as_they_wrote_it(
    names: tuple[str, str, str], words: list[str], value: str
) -> None:
    try:
        found = render(experiment_of(names, words, value))
    except InputError as error:
        assert "secret" in str(error) or "token" in str(error) or "credentials" in str(error)  # noqa: PT017
        return
    for file in (*found.rendered.files, *found.rendered.kustomizations):
        read = list(YAML(typ="safe", pure=True).load_all(to_yaml(file)))
        assert read == list(file.objects)
    container = container_of(found)
    after = container["args"][container["args"].index("--") + 1 :]
    assert [expanded(word) for word in after] == ["/opt/train.py", *words]
    assert expanded(variables_of(container)["ODD"]) == value


def expanded(text: str) -> str:
    """As Kubernetes makes an argument of it, where no variable is known: `$$` is a `$`.

    Source: Kubernetes, third_party/forked/golang/expansion, Expand.
    """
    found, place = "", 0
    while place < len(text):
        if text[place] == "$" and place + 1 < len(text) and text[place + 1] == "$":
            place += 1
        elif text[place] == "$" and text[place + 1 : place + 2] == "(" and ")" in text[place:]:
            raise AssertionError(f"{text!r} would be expanded")
        found += text[place]
        place += 1
    return found


@costly(60)
@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=5, unique=True))
def test_every_object_has_a_name_of_its_own(names: list[tuple[str, str]]) -> None:
    """Or two that differ in a dot or a hyphen only are refused."""
    workloads = list(dict.fromkeys(name for name, _ in names))
    networks = list(dict.fromkeys(name for _, name in names))
    base = experiment_of(("e", workloads[0], networks[0]), [], "v").model_dump(mode="json")
    (workload,) = base["workloads"]
    base["workloads"] = [{**workload, "name": name} for name in workloads]
    base["networks"] = [{"name": name, "kubernetes": "pod"} for name in networks]
    try:
        found = render(Experiment.model_validate(base))
    except InputError as error:
        assert "would both be the job" in str(error)  # noqa: PT017
        return
    named = [(each["kind"], each["metadata"]["name"]) for each in found.rendered.objects]
    assert len(set(named)) == len(named)
    paths = [file.path for file in found.rendered.files]
    assert len(set(paths)) == len(paths)
    for _, name in named:
        assert len(name) <= MOST_NAME_CHARACTERS + len("-files")
        assert re.fullmatch(LABEL, name)


SECRETS = [
    ("environment.HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("environment.A_URL", "https://me:pass@host/x"),
    ("environment.OTHER", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("workloads.mine.command", "[train.py, --hub-token, abcdefghij]"),
    ("workloads.mine.command", '[train.py, "https://u:p@h/m.tgz"]'),
    ("networks.pod.description", "use ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
]


@pytest.mark.parametrize(("key", "value"), SECRETS)
def test_a_secret_is_refused_without_being_told(tmp_path: Path, key: str, value: str) -> None:
    """Nothing that stands where a manifest would show it is rendered."""
    (tmp_path / "train.py").touch()
    with pytest.raises(BroadgaugeError) as caught:
        rendered(tmp_path, f"{key}={value}", "cluster.device=cpu")
    for word in ("abcdefghij", "me:pass", "u:p@"):
        assert word not in str(caught.value)


@pytest.mark.parametrize(
    "keys",
    [
        "annotations: {note: hf_abcdefghijklmnopqrstuvwxyz0123456789}",
        "annotations: {a: 'https://h/x?X-Amz-Signature=abcdefghij'}",
        "labels: {wandb-api-key: abcdefghij}",
    ],
)
def test_a_label_or_annotation_holds_no_secret(tmp_path: Path, keys: str) -> None:
    (tmp_path / "train.py").touch()
    with pytest.raises(BroadgaugeError, match="holds a secret") as caught:
        rendered(tmp_path, text=EXPERIMENT.replace("kubernetes: {", f"kubernetes: {{{keys}, "))
    assert "abcdefghij" not in str(caught.value)


def test_a_secret_of_the_cluster_is_a_reference(tmp_path: Path) -> None:
    ref = "kubernetes.secrets={HF_TOKEN: {secret: hf, key: token}}"
    (tmp_path / "train.py").touch()
    token = "environment.HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789"
    found = rendered(tmp_path, token, ref, "cluster.device=cpu")
    text = json.dumps(found.rendered.objects)
    assert "hf_abc" not in text
    reference: dict[str, Any] = variables_of(container_of(found))["HF_TOKEN"]
    assert reference == {"secretKeyRef": {"name": "hf", "key": "token"}}


@pytest.mark.parametrize("name", [".env", "secrets.json", "id_ed25519", "tls.key"])
def test_a_file_that_keeps_secrets_is_sent_only_where_it_is_listed(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "train.py").touch()
    words = f'workloads.mine.command=[train.py, "{name}"]'
    with pytest.raises(InputError, match="by its name holds secrets"):
        rendered(tmp_path, words, "cluster.device=cpu")
    found = rendered(tmp_path, words, f'kubernetes.files=["{name}"]', "cluster.device=cpu")
    assert any(name in each.get("data", {}) for each in objects_of(found, "ConfigMap"))
    (tmp_path / name).write_text("A=1\nexport HF_TOKEN=abcdefghij\n")
    with pytest.raises(InputError, match="sets HF_TOKEN") as caught:
        rendered(tmp_path, words, f'kubernetes.files=["{name}"]', "cluster.device=cpu")
    assert "abcdefghij" not in str(caught.value)


def test_a_file_with_a_private_key_is_never_sent(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("KEY = '''-----BEGIN RSA PRIVATE KEY-----'''\n")
    with pytest.raises(InputError, match="holds a token or a private key"):
        rendered(tmp_path, "cluster.device=cpu", text=EXPERIMENT)
