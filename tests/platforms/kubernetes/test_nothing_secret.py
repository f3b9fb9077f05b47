"""Proves platforms/kubernetes/nothing_secret.py: no secret gets into a ConfigMap by a command, a
variable or a file, and the refusal doesn't repeat it."""

from pathlib import Path
from typing import Any

import pytest
from tests.manifests.requests import experiment_of

from broadgauge.engine.plan import make_plan
from broadgauge.platforms.kubernetes.devices import kubernetes_devices
from broadgauge.platforms.kubernetes.nothing_secret import keeps_secrets, refuse_secrets
from broadgauge.platforms.kubernetes.user_files import user_files
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment

KEY = "q7Zk2mPx9LwB4tVn8RcJ"
METRICS = [{"name": "loss", "regex": "loss=(.*)"}]


def planned(*words: str, **changed: Any) -> tuple[tuple[Case, ...], Experiment]:
    command = {"kind": "command", "command": ["mine.py", *words], "metrics": METRICS, **changed}
    data = experiment_of().model_dump(mode="json", exclude_defaults=True)
    experiment = Experiment.model_validate(data | {"workloads": [command]})
    plan = make_plan(experiment, {"kubernetes": kubernetes_devices(experiment)})
    return plan.cases, experiment


@pytest.mark.parametrize(
    "words",
    [
        ("--token", f"hf_{KEY}"),
        (f"hf_{KEY}",),
        ("--password", "correct horse"),
        ("--hf-token=short",),
        ("--api_key", "abc"),
        ("trainer.wandb.api_key=abc",),
        ("WANDB_API_KEY=abc",),
        ("--wandb-key", KEY),
        ("--data", "https://me:correct@example.com/a"),
        ("--data", f"https://example.com/a?sig={KEY}"),
    ],
)
def test_a_word_that_is_a_secret_is_refused_without_being_repeated(words: tuple[str, ...]) -> None:
    cases, experiment = planned(*words)
    with pytest.raises(InputError, match=r"^workloads\.command\.command\[\d\] ") as refused:
        refuse_secrets(cases, experiment.kubernetes)
    shown = f"{refused.value} {refused.value.hint}"
    assert "kubernetes: {secrets: " in shown
    for secret in (KEY, "correct", "abc", "short"):
        assert secret not in shown


@pytest.mark.parametrize(
    "words",
    [
        ("--pad_token", "<pad>"),
        ("--token", "$HF_TOKEN"),
        ("--use-token", "true"),
        ("--token", "--verbose"),
        ("--text-key", "text"),
        ("--max-tokens", "512"),
        ("--sort_key=length",),
        ("--token-file", "/mnt/token"),
        ("tokenizer.json",),
    ],
)
def test_other_words_are_sent(words: tuple[str, ...]) -> None:
    cases, experiment = planned(*words)
    refuse_secrets(cases, experiment.kubernetes)


def test_a_variable_and_an_annotation_with_a_token_are_refused() -> None:
    cases, experiment = planned(environment={"MY_VALUE": f"hf_{KEY}"})
    with pytest.raises(InputError, match=r"environment\.MY_VALUE") as refused:
        refuse_secrets(cases, experiment.kubernetes)
    assert KEY not in str(refused.value)
    settings = experiment_of(annotations={"team": f"ghp_{KEY}"}).kubernetes
    with pytest.raises(InputError, match=r"kubernetes\.annotations\.team"):
        refuse_secrets((), settings)


@pytest.mark.parametrize(
    "name", ["secrets.env", ".env", ".env.local", "tls.pem", "id_ed25519", "hf_token.txt", ".netrc"]
)
def test_files_that_keep_secrets_are_not_sent_unasked(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text("print('loss=1')\n")
    (tmp_path / name).write_text("PLAIN=1\n")
    cases, experiment = planned(name)
    with pytest.raises(InputError, match="is not sent") as refused:
        user_files(cases, experiment.kubernetes, tmp_path)
    assert refused.value.hint is not None
    assert f"files: [{name}]" in refused.value.hint
    listed = experiment.kubernetes.model_copy(update={"files": (name,)})
    assert user_files(cases, listed, tmp_path) == {
        name: b"PLAIN=1\n",
        "mine.py": b"print('loss=1')\n",
    }


def test_a_file_with_a_token_in_it_is_not_sent_even_if_it_is_listed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"login('hf_{KEY}')\n")
    cases, experiment = planned()
    listed = experiment.kubernetes.model_copy(update={"files": ("mine.py",)})
    for settings in (experiment.kubernetes, listed):
        with pytest.raises(InputError, match=r"mine\.py holds a token") as refused:
            user_files(cases, settings, tmp_path)
        assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    ["id_mapping.py", "secrets.py", "tokenizer.json", "tokens.txt", "id_rsa.pub", "keys.csv"],
)
def test_other_names_are_let_through(name: str) -> None:
    assert not keeps_secrets(name)
