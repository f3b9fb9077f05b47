"""Proves `35-prepare/`, and that a training's pods wait for it: names, rights, secrets, order."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly
from tests.running.rendering.experiments import (
    EXPERIMENT,
    container_of,
    objects_of,
    rendered,
    variables_of,
)
from tests.running.rendering.test_hostile_words import ODD, WORDS, expanded

from broadgauge.agent import bundle
from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.prepare_order import PREPARE_ORDER, VARIABLE, PrepareOrder
from broadgauge.running.rendering.experiment import RenderedExperiment
from broadgauge.specs.errors import BroadgaugeError, InputError
from broadgauge.specs.kubernetes.pod_prepare import PodPrepare

STORAGE = "{name: storage, claim: fine-tuning-storage, mount: /mnt/storage/}"
GRANITE = "{source: ibm-granite/granite-3.1-8b-starter-v2, to: model/granite-3.1-8b-starter-v2}"
LINES = '{source: "https://host/d/data.jsonl", file: data.jsonl, to: dataset/data.jsonl}'
TOKENISE = "{words: [python3, tokenise.py, $(HOME)], file: data.jsonl, to: dataset/tokens.jsonl}"
SECRETS = "{HF_TOKEN: {secret: hf, key: token}, WANDB_API_KEY: {secret: w, key: k}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.py", "tokenise.py", "helper.py"):
        (tmp_path / name).write_text(f"print({name!r})\n")
    return tmp_path


def with_preparation(folder: Path, *overrides: str, prepare: str = "") -> RenderedExperiment:
    """`prepare`: what it asks for, the article's model if it is not said."""
    asked = prepare or f"model: {GRANITE}"
    return rendered(
        folder,
        f"kubernetes.volumes=[{STORAGE}]",
        f"kubernetes.secrets={SECRETS}",
        f"kubernetes.prepare={{volume: storage, {asked}}}",
        "cluster.device=cuda",
        *overrides,
    )


def job_of(found: RenderedExperiment) -> Manifest:
    """The one that fetches."""
    return next(
        each for each in objects_of(found, "Job") if "-prepare-" in each["metadata"]["name"]
    )


def fetching_container(found: RenderedExperiment) -> Manifest:
    [container] = job_of(found)["spec"]["template"]["spec"]["containers"]
    return dict(container)


def waiting_container(found: RenderedExperiment) -> Manifest:
    """Of the last job's pods."""
    pod = objects_of(found, "Job")[-1]["spec"]["template"]["spec"]
    return dict(pod["initContainers"][0])


def order_of(container: Manifest) -> PrepareOrder:
    """As its process reads it."""
    return PREPARE_ORDER(json.loads(expanded(variables_of(container)[VARIABLE])))


def test_the_articles_model_comes_to_the_path_of_its_configuration(folder: Path) -> None:
    """002's config.json names /mnt/storage/model/… and /mnt/storage/dataset/data.jsonl."""
    found = with_preparation(folder, prepare=f"model: {GRANITE}, dataset: {LINES}")
    order = order_of(fetching_container(found))
    model, lines = order.fetched
    assert (model.source, model.revision) == ("ibm-granite/granite-3.1-8b-starter-v2", "main")
    assert model.link == "/mnt/storage/model/granite-3.1-8b-starter-v2"
    assert order.link_target(model) == f"../broadgauge/{model.name}"
    assert lines.link == "/mnt/storage/dataset/data.jsonl"
    assert order.link_target(lines) == f"../broadgauge/{lines.name}/data.jsonl"
    ranks = variables_of(container_of(found))
    assert ranks["BROADGAUGE_MODEL"] == f"/mnt/storage/broadgauge/{model.name}"
    assert ranks["BROADGAUGE_DATASET"] == f"/mnt/storage/broadgauge/{lines.name}/data.jsonl"
    assert model.name.startswith("model-granite-3.1-8b-starter-v2-")


def test_a_model_of_a_registry_comes_with_its_pull_secret(folder: Path) -> None:
    """Where RHEL AI's models are, the article's among them."""
    found = with_preparation(
        folder,
        "kubernetes.secrets={REGISTRY_AUTH: {secret: pull, key: .dockerconfigjson}}",
        prepare='model: {source: "oci://host/rhelai1/granite:1.5", leave_out: ["*.md"]}',
    )
    container = fetching_container(found)
    [part] = order_of(container).fetched
    assert (part.leave_out, part.revision) == (("*.md",), None)
    assert part.name.startswith("model-granite-1.5-")
    secret = {"secretKeyRef": {"name": "pull", "key": ".dockerconfigjson"}}
    assert variables_of(container)["REGISTRY_AUTH"] == secret
    assert any("way from a pod to oci://host" in need for need in found.rendered.prerequisites)


def test_pods_of_every_case_wait_for_the_same_before_anything_else(folder: Path) -> None:
    found = with_preparation(folder)
    fetching = fetching_container(found)
    paths = [file.path for file in found.rendered.files]
    assert paths[0] == "35-prepare/prepare.yaml"
    own = [each for each in objects_of(found, "Job") if each is not job_of(found)]
    assert len(own) == 2
    for each in own:
        pod = each["spec"]["template"]["spec"]
        waiting = pod["initContainers"][0]
        assert waiting["command"][-1] == "wait"
        assert waiting["args"] == ["--limit-s", "7200"]
        assert order_of(waiting) == order_of(fetching)
        mounts = {each["name"]: each for each in waiting["volumeMounts"]}
        assert mounts["claim-1"] == {
            "name": "claim-1", "mountPath": "/mnt/storage", "readOnly": True
        }  # fmt: skip
        assert mounts.keys() <= {volume["name"] for volume in pod["volumes"]}
    assert any("hold their GPUs while they wait" in note for note in found.rendered.notes)
    assert any("huggingface.co (ibm-granite/" in need for need in found.rendered.prerequisites)


@pytest.mark.parametrize("kind", ["job", "pytorchjob", "trainjob"])
def test_every_kind_of_job_waits(folder: Path, kind: str) -> None:
    found = with_preparation(folder, f"kubernetes.job={kind}")
    text = json.dumps([each for each in found.rendered.objects if each is not job_of(found)])
    num_templates = 3 if kind == "pytorchjob" else 2
    assert text.count('"name": "prepared"') == num_templates
    assert fetching_container(found)["command"][-1] == "prepare"


def test_an_experiment_without_it_has_none_of_it(folder: Path) -> None:
    text = json.dumps(rendered(folder, "cluster.device=cuda").rendered.objects)
    assert not any(word in text for word in ("prepared", "BROADGAUGE_MODEL", VARIABLE))


def test_a_pod_that_fetches_may_do_no_more_than_one_that_trains(folder: Path) -> None:
    found = with_preparation(folder, "kubernetes.fs_group=2000", "kubernetes.run_as_user=1000")
    pod = job_of(found)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": 2000,
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    for container in (*pod["containers"], waiting_container(found)):
        assert container["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "nvidia.com/gpu" not in container["resources"]["requests"]


def test_a_failure_that_lasts_ends_the_job_and_another_is_tried_again(folder: Path) -> None:
    found = with_preparation(folder)
    spec = job_of(found)["spec"]
    [rule] = spec["podFailurePolicy"]["rules"]
    [container] = spec["template"]["spec"]["containers"]
    assert rule == {
        "action": "FailJob",
        "onExitCodes": {"containerName": container["name"], "operator": "In", "values": [2]},
    }
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (6, "Never")


def test_secrets_are_references_and_only_those_that_it_needs(folder: Path) -> None:
    variables = variables_of(fetching_container(with_preparation(folder)))
    assert variables["HF_TOKEN"] == {"secretKeyRef": {"name": "hf", "key": "token"}}
    assert "WANDB_API_KEY" not in variables
    found = with_preparation(folder, prepare=f"model: {GRANITE}, command: {TOKENISE}")
    assert variables_of(fetching_container(found)).keys() > {"HF_TOKEN", "WANDB_API_KEY"}
    assert "HF_TOKEN" not in variables_of(waiting_container(found))


def test_its_program_is_small_and_holds_what_it_runs(folder: Path) -> None:
    found = with_preparation(folder)
    name = job_of(found)["metadata"]["name"]
    by_name = {each["metadata"]["name"]: each for each in objects_of(found, "ConfigMap")}
    assert by_name[name].keys() == {"apiVersion", "kind", "metadata", "binaryData"}
    program = bundle.build(bundle.PREPARE_PARTS)
    with zipfile.ZipFile(io.BytesIO(program)) as archive:
        assert "broadgauge/agent/volume/prepare.py" in archive.namelist()
    assert len(program) < 50_000


def test_a_command_is_sent_with_its_files_and_runs_among_them(folder: Path) -> None:
    found = with_preparation(folder, "kubernetes.files=[helper.py]", prepare=f"command: {TOKENISE}")
    order = order_of(fetching_container(found))
    assert order.command is not None
    assert order.command.words == ("python3", "tokenise.py", "$(HOME)")
    assert order.command.folder == "/broadgauge/files"
    files = next(
        each for each in objects_of(found, "ConfigMap")
        if each["metadata"]["name"] == f"{job_of(found)['metadata']['name']}-files"
    )  # fmt: skip
    assert files["data"].keys() == {"tokenise.py", "helper.py"}
    ranks = variables_of(container_of(found))
    assert ranks["BROADGAUGE_PREPARED"] == f"{order.place(order.command)}/data.jsonl"


def names(folder: Path, prepare: str) -> tuple[str, ...]:
    """Of the Job and the folders."""
    found = with_preparation(folder, prepare=prepare)
    order = order_of(fetching_container(found))
    return (job_of(found)["metadata"]["name"], *(part.name for part in order.parts))


def test_what_is_asked_for_otherwise_has_another_name(folder: Path) -> None:
    """A Job can't be changed; a folder is never made anew."""
    first = names(folder, f"model: {GRANITE}, command: {TOKENISE}")
    assert first == names(folder, f"model: {GRANITE}, command: {TOKENISE}")
    moved = names(folder, f"model: {GRANITE.replace('to: model', 'to: m')}, command: {TOKENISE}")
    assert moved[0] != first[0]
    assert moved[1:] == first[1:]
    revised = GRANITE.replace("{", "{revision: v1, ")
    other = names(folder, f"model: {revised}, command: {TOKENISE}")
    assert not set(other) & set(first)
    (folder / "tokenise.py").write_text("print('changed')\n")
    changed = names(folder, f"model: {GRANITE}, command: {TOKENISE}")
    assert changed[1] == first[1]
    assert not set(changed[2:]) & set(first)


HOSTILE = st.one_of(WORDS, ODD, st.sampled_from(["a/../b", "/x", "a//b", "..", "https://h/$(X)"]))


@costly(60)
@given(
    st.lists(HOSTILE, min_size=1, max_size=3),
    st.sampled_from(["a/b", "https://h/$(X)", "/x y/$(X)", "file:///a"]) | HOSTILE,
    st.sampled_from(["a b/$(X)", "m'\"", "-"]) | HOSTILE,
)
def test_what_users_write_arrives_as_they_wrote_it(
    words: list[str], source: str, place: str
) -> None:
    """Or is refused; no place lies outside of the volume."""
    asked: dict[str, Any] = {
        "volume": "storage",
        "dataset": {"source": source, "to": place},
        "command": ["/opt/x", *words],
        "environment": {"ODD": words[0]},
    }
    try:
        prepare = PodPrepare.model_validate(asked)
        found = rendered(Path("/"), f"kubernetes.volumes=[{STORAGE}]", text=with_asked(asked))
    except (ValueError, BroadgaugeError):
        return
    for file in found.rendered.files:
        assert to_yaml(file)
    container = fetching_container(found)
    order = order_of(container)
    assert order.command is not None
    assert order.command.words == ("/opt/x", *words)
    assert prepare.dataset is not None
    [part] = order.fetched
    assert part.source == source
    assert part.link == f"/mnt/storage/{place}"
    assert ".." not in part.link.split("/")
    assert expanded(variables_of(container)["ODD"]) == words[0]
    assert order_of(waiting_container(found)) == order


def with_asked(asked: dict[str, Any]) -> str:
    """An experiment whose preparation is this."""
    return EXPERIMENT.replace("[train.py,", "[/opt/train.py,").replace(
        "kubernetes: {", f"kubernetes: {{prepare: {json.dumps(asked)}, "
    )


@pytest.mark.parametrize(
    "override",
    [
        "kubernetes.prepare.environment={HTTPS_PROXY: 'http://proxy:3128'}",
        "kubernetes.prepare.cpus=2",
        "kubernetes.image=registry.example/other:2",
        "kubernetes.service_account=trainer",
        "kubernetes.secrets={HF_TOKEN: {secret: other, key: token}}",
    ],
)
def test_a_job_that_would_be_another_has_another_name(folder: Path, override: str) -> None:
    """None can be changed where it is there; what it has fetched is found by the other, too."""
    before, after = (job_of(with_preparation(folder, *more)) for more in ((), (override,)))
    assert before["spec"]["template"] != after["spec"]["template"]
    assert before["metadata"]["name"] != after["metadata"]["name"]
    orders = [
        order_of(fetching_container(with_preparation(folder, *more))) for more in ((), (override,))
    ]
    assert orders[0].fetched == orders[1].fetched


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        ("model: hf_abcdefghijklmnopqrstuvwxyz0123456789", "form of a token"),
        ('model: "https://me:abcdefghij@host/x"', "credentials"),
        ('model: "https://host/x?X-Amz-Signature=abcdefghij"', "credentials"),
        ('model: "https://me:abc/defghij@host/x"', "is no `https://host/path`"),
        ("command: [x, --hub-token, abcdefghij]", "is the value of `hub-token`"),
        ('command: [curl, "https://u:abcdefghij@h/m.tgz"]', "credentials"),
        ("model: a/b, environment: {MY_TOKEN: abcdefghij}", "holds a secret"),
        ('model: a/b, environment: {HTTPS_PROXY: "http://u:abcdefghij@h:1"}', "holds a secret"),
    ],
)
def test_a_secret_is_refused_without_being_told(folder: Path, prepare: str, words: str) -> None:
    keys = f"volumes: [{STORAGE}], prepare: {{volume: storage, {prepare}}}"
    text = EXPERIMENT.replace("kubernetes: {", f"kubernetes: {{{keys}, ")
    with pytest.raises(BroadgaugeError, match=words) as caught:
        rendered(folder, "cluster.device=cuda", text=text)
    assert "defghij" not in str(caught.value)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        ("wait_limit_s: 1 h", "at least one of `model`"),
        ("model: {source: a/b/c}", "no repository of the hub, no URL"),
        ('model: "ftp://host/x"', "is no `https://host/path`"),
        ("model: {source: /x, revision: v1}", "`revision` is of a repository"),
        ("model: {source: a/b, sha256: SUM}", "of what a URL gives"),
        ("model: {source: a/b, to: ../x}", "no path below a folder"),
        ("model: {source: a/b, to: /x}", "no path below a folder"),
        ("model: {source: a/b, to: broadgauge/x}", "Broadgauge's own folder"),
        ("model: {source: a/b, to: m}, dataset: {source: c/d, to: m/d}", "one place"),
        ("command: []", "a list of 1 or more"),
        ('model: "oci://host"', "is no `https://host/path`"),
        ('model: "oci://host/a@sha256:12"', "is no `https://host/path`"),
        ("model: a/b, environment: {BROADGAUGE_MODEL: x}", "Broadgauge's own variable"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, prepare: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_preparation(folder, prepare=prepare.replace("SUM", f"'{'0' * 64}'"))


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        (
            "{name: other, mount: /x}",
            "`volume`: no volume is named `storage`\n  hint: known: other",
        ),
        ("{name: storage, mount: /x, is_read_only: true}", "can't be written to"),
        ("{name: storage, mount: /x, access: ReadOnlyMany}", "can't be written to"),
    ],
)
def test_the_volume_is_one_that_can_be_filled(folder: Path, volume: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_preparation(folder, f"kubernetes.volumes=[{volume}]")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_who_waits_is_said_and_what_it_costs(folder: Path, device: str) -> None:
    found = with_preparation(folder, f"cluster.device={device}")
    (note,) = [each for each in found.rendered.notes if "for the Job" in each]
    assert note.startswith("pods that mount storage ")
    assert ("hold their GPUs" in note) is (device == "cuda")


def test_a_script_that_is_not_there_is_noted(folder: Path) -> None:
    """It may be in the image, or on the volume."""
    found = with_preparation(folder, prepare="command: [python3, none.py]")
    assert any("none.py is no file beside the experiment" in each for each in found.rendered.notes)
    there = with_preparation(folder, prepare=f"command: {TOKENISE}")
    assert not any("is no file beside" in each for each in there.rendered.notes)


def test_a_claim_of_one_node_is_noted(folder: Path) -> None:
    volume = "{name: storage, mount: /x, size_bytes: 1 GiB, access: ReadWriteOnce}"
    found = with_preparation(folder, f"kubernetes.volumes=[{volume}]")
    assert any("keep 35-prepare from filling it" in note for note in found.rendered.notes)
    paths = [file.path for file in found.rendered.files]
    assert paths.index("30-storage/claims.yaml") < paths.index("35-prepare/prepare.yaml")
