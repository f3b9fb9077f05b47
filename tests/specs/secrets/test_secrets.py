"""Proves specs/secrets/: no value rests."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.specs.test_case import make_case

from broadgauge.specs.errors import ExperimentError, InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.secrets.names import credentials_in, is_secret, without_credentials
from broadgauge.specs.secrets.values import Masker, Secrets, SecretText
from broadgauge.specs.secrets.variables import FromEnvironment
from broadgauge.specs.text.reading import read_experiment, read_with_secrets
from broadgauge.specs.text.writing import dump_experiment

PLANTED = "hf_Pl4nted0000000000"
DECLARED = FromEnvironment(from_environment=True)
FILE = """\
name: own
platform: local
cluster: {{shapes: [1x1]}}
networks:
  - {{name: loop, path: sockets, environment: {network}}}
workloads:
  - {{kind: train, environment: {workload}}}
environment: {experiment}
"""


def text(experiment: str = "{}", network: str = "{}", workload: str = "{}") -> str:
    return FILE.format(experiment=experiment, network=network, workload=workload)


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", "wandb_api_key", "TOKEN"),
        *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "PGPASSWORD"),
        *("MLFLOW_TRACKING_PASSWORD", "CLEARML_API_SECRET_KEY", "DEPLOY_PRIVATE_KEY", "GH_PAT"),
        *("AZURE_STORAGE_CONNECTION_STRING", "CLIENT_SECRET", "MY_TOKEN", "API_KEY"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "NCCL_KEY", "KEYBOARD", "KEY", "MONKEY", "PATH"),
        *("MAX_TOKEN", "MAX_TOKENS", "PAD_TOKEN", "TOKENIZER_PAD_TOKEN", "BYTES_PER_TOKEN"),
        *("AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "PASSWORD_STORE_DIR"),
        *("AWS_ROLE_ARN", "SECRETS_FOLDER", "SORT_KEY", "HF_HOME", "NOTATOKEN"),
    ],
)
def test_names_of_none(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("http://me:pass@proxy:3128", "http://***@proxy:3128"),
        ("https://ghp_x@github.com/a/b?c=d", "https://***@github.com/a/b?c=d"),
        ("http://a:p@ss@host/x", "http://***@host/x"),
        ("s3://:key@h,redis://:pw@r/0", "s3://***@h,redis://***@r/0"),
        ("ssh://git@github.com/a", "ssh://git@github.com/a"),
        ("https://host/a@b", "https://host/a@b"),
        ("me@host", "me@host"),
    ],
)
def test_the_credentials_of_urls(value: str, stored: str) -> None:
    assert without_credentials(value) == stored
    assert without_credentials(stored) == stored
    assert not [part for part in credentials_in(value) if part in stored and len(part) > 2]


@pytest.mark.parametrize("where", ["experiment", "network", "workload"])
@pytest.mark.parametrize("written", [f"HF_TOKEN: {PLANTED}", "HF_TOKEN: {from_environment: true}"])
def test_an_experiment_holds_no_value(where: str, written: str) -> None:
    experiment, secrets = read_with_secrets(text(**{where: f"{{{written}}}"}), "e.yaml")
    stored = dump_experiment(experiment)
    assert PLANTED not in stored + repr(experiment) + experiment.model_dump_json()
    assert "HF_TOKEN:\n" in stored
    assert read_experiment(stored, "stored.yaml") == experiment
    assert secrets == ({"HF_TOKEN": SecretText(PLANTED)} if PLANTED in written else {})


def test_of_a_url_all_but_the_credentials_is_kept() -> None:
    url = "HTTPS_PROXY: 'http://me:planted@proxy:3128'"
    experiment, secrets = read_with_secrets(text(f"{{{url}}}"), "e.yaml")
    assert "planted" not in dump_experiment(experiment)
    assert "shown: http://***@proxy:3128" in dump_experiment(experiment)
    assert secrets["HTTPS_PROXY"].reveal() == "http://me:planted@proxy:3128"
    assert read_experiment(dump_experiment(experiment), "stored.yaml") == experiment


@pytest.mark.parametrize(
    ("variables", "where", "said"),
    [
        (f"{{HF_TOKEN: [{PLANTED}, other]}}", "e.yaml:7:33", "a secret is no axis"),
        ("{DATA_URL: ['https://a:planted@h/x', b]}", "e.yaml:7:33", "a secret is no axis"),
        ("{PASSWORD: 12345678}", "e.yaml:7:33", "a secret is text"),
        (f"{{HF_TOKEN: {{from_environment: {PLANTED}}}}}", "e.yaml:7:44", "takes `true`"),
        (f"{{HF_TOKEN: {{from_enviroment: {PLANTED}}}}}", "e.yaml", "did you mean `from_env"),
        (f"{{HF_TOKEN: {{shown: 'http://a:{PLANTED}@h'}}}}", "e.yaml", "from_environment"),
        (f'{{HF_TOKEN: "{PLANTED}\\0"}}', "e.yaml:7:33", "NUL"),
        (f"{{RANK: 1, HF_TOKEN: {PLANTED}}}", "e.yaml:7:33", "a launcher sets"),
        (f"{{HF_TOKEN: {{{PLANTED}}}}}", "e.yaml:7:33", "without braces"),
        (f"HF_TOKEN={PLANTED}", "e.yaml:7:", "takes names with their values"),
    ],
)
def test_a_mistake_is_told_without_the_value(variables: str, where: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment(text(workload=variables), "e.yaml")
    message = str(caught.value)
    assert message.startswith(where)
    assert said in message
    assert not [secret for secret in (PLANTED, "planted", "12345678") if secret in message]


def test_a_secret_has_one_value_in_a_run() -> None:
    both = text(f"{{HF_TOKEN: {PLANTED}}}", workload="{HF_TOKEN: another-value}")
    with pytest.raises(ExperimentError, match="two values") as caught:
        read_experiment(both, "e.yaml")
    assert PLANTED not in str(caught.value)
    assert "another-value" not in str(caught.value)
    once = text(f"{{HF_TOKEN: {PLANTED}}}", workload="{HF_TOKEN: {from_environment: true}}")
    assert read_with_secrets(once, "e.yaml")[1] == {"HF_TOKEN": SecretText(PLANTED)}


@pytest.mark.parametrize(
    "flag", ["environment.HF_TOKEN={}", "environment={{HF_TOKEN: {}, RANK: 1}}"]
)
def test_a_flag_may_bring_one_and_no_error_repeats_it(flag: str) -> None:
    override = flag.format(PLANTED)
    if "RANK" not in flag:
        assert read_with_secrets(text(), "e.yaml", [override])[1]["HF_TOKEN"].reveal() == PLANTED
        override += ": ["
    with pytest.raises(ExperimentError, match=r"--set environment") as caught:
        read_experiment(text(), "e.yaml", [override])
    assert PLANTED not in str(caught.value)


@pytest.mark.parametrize(
    "override",
    [
        f"networks=[{{name: n, environment: {{HF_TOKEN: {PLANTED}}}, unknown: 1}}]",
        f"workloads.train.environment.X={{from_environment: {PLANTED}}}",
        f"environment.HF_TOKEN {PLANTED}",
        f"unknown=HF_TOKEN: {PLANTED}",
        f"unknown=https://host/m.tar?X-Amz-Signature={PLANTED}",
        f"unknown=[sh, sk-0123456789abcdefghij{PLANTED}]",
    ],
)
def test_a_flag_with_a_secret_inside_is_not_repeated(override: str) -> None:
    with pytest.raises(ExperimentError, match=r"--set ") as caught:
        read_experiment(text(), "e.yaml", [override])
    assert PLANTED not in str(caught.value)


def test_a_variable_with_a_secrets_value_is_one_too() -> None:
    copies = f"{{COPY: {PLANTED}}}"
    values = f"{{HF_TOKEN: &token {PLANTED}, COPY: *token, HEADER: Bearer {PLANTED}}}"
    copied = text(values, network=copies, workload=copies)
    experiment, secrets = read_with_secrets(copied, "e.yaml")
    stored = dump_experiment(experiment)
    assert PLANTED not in stored
    assert secrets["COPY"].reveal() == PLANTED
    assert secrets["HEADER"].reveal() == f"Bearer {PLANTED}"
    assert read_experiment(stored, "stored.yaml") == experiment


@pytest.mark.parametrize("other", [f"description: 'see {PLANTED}'", f"hosts: [{PLANTED}]"])
def test_a_secrets_value_elsewhere_is_refused_without_it(other: str) -> None:
    with pytest.raises(ExperimentError, match="the value of the secret `HF_TOKEN`") as caught:
        read_experiment(text(f"{{HF_TOKEN: {PLANTED}}}") + other + "\n", "e.yaml")
    assert PLANTED not in str(caught.value)


@pytest.mark.parametrize("key", ["environment.HF_TOKEN.x", "enviroment.HF_TOKEN", "environment"])
def test_a_mistaken_flag_is_told_without_the_value(key: str) -> None:
    with pytest.raises(ExperimentError, match=r"--set envi") as caught:
        read_experiment(text(), "e.yaml", [f"{key}={PLANTED}"])
    assert PLANTED not in str(caught.value)


def test_a_model_refuses_a_value_that_would_be_stored() -> None:
    with pytest.raises(ValueError, match="`HF_TOKEN` is a secret"):
        make_case(environment={"HF_TOKEN": PLANTED})
    with pytest.raises(ValueError, match="is a secret"):
        Experiment.model_validate({"name": "x", "environment": {"A_URL": "http://a:b@c"}})


def test_a_key_has_the_secrets_name_and_never_its_value() -> None:
    keys = {
        read_with_secrets(text(f"{{HF_TOKEN: {value}}}"), "e.yaml")[0].model_dump_json()
        for value in (PLANTED, "hf_another0000000", "{from_environment: true}")
    }
    assert len(keys) == 1
    declared = make_case(environment={"HF_TOKEN": DECLARED})
    assert declared.key != make_case().key
    assert declared.key != make_case(environment={"WANDB_API_KEY": DECLARED}).key
    assert make_case(environment={"A": "1"}).key == "18b2a8759b0b4fbd", "as before secrets"


def test_a_secret_is_not_printed_copied_or_pickled_by_accident() -> None:
    secret = SecretText(PLANTED)
    held = Secrets(literals={"A": secret}, environment={"B": PLANTED})
    assert PLANTED not in f"{secret} {secret!r} {held} {held!r}"
    for spread in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            spread(secret)
    assert secret.reveal() == PLANTED


def test_the_file_wins_then_the_environment_and_nothing_is_an_error() -> None:
    environment = {"A": "of-the-user", "B": "of-the-user", "C": ""}
    secrets = Secrets(literals={"A": SecretText("of-the-file")}, environment=environment)
    assert secrets.value("A", DECLARED).reveal() == "of-the-file"
    assert secrets.value("B", DECLARED).reveal() == "of-the-user"
    for name in ("C", "D"):
        with pytest.raises(InputError, match=f"`{name}` is not set") as caught:
            secrets.check([make_case(environment={"B": DECLARED, name: DECLARED})])
        assert caught.value.hint is not None
        assert f"export {name}=" in caught.value.hint


def test_a_url_must_be_the_one_that_was_planned() -> None:
    planned = FromEnvironment(from_environment=True, shown="http://***@proxy:3128")
    new_password = Secrets(environment={"P": "http://me:other@proxy:3128"})
    assert new_password.value("P", planned).reveal() == "http://me:other@proxy:3128"
    for other in ("http://me:pass@elsewhere:3128", "not-a-url"):
        with pytest.raises(InputError, match="not the one that was planned") as caught:
            Secrets(environment={"P": other}).value("P", planned)
        assert "me:pass" not in str(caught.value)
        assert "not-a-url" not in str(caught.value)


def test_texts_are_masked_of_all_that_ranks_may_know() -> None:
    environment = {
        "WANDB_API_KEY": "inherited-key",
        "DECLARED": "declared-value",
        "PROXY": "http://me:p%40ssword@proxy",
        "HOME": "/home/me-and-you",
        "SHORT_TOKEN": "dev",
        "DEPLOY_PRIVATE_KEY": "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END KEY-----",
    }
    secrets = Secrets(literals={"HF_TOKEN": SecretText(PLANTED)}, environment=environment)
    mask = secrets.masker([make_case(environment={"DECLARED": DECLARED})])
    said = f"{PLANTED} inherited-key declared-value /home/me-and-you p@ssword p%40ssword dev"
    assert mask(said) == "*** *** *** /home/me-and-you *** *** dev"
    assert mask("line: MIIEvQIBADANBgkqhkiG9w0B") == "line: ***"
    assert mask("to http://me:p%40ssword@proxy.") == "to ***."


def test_of_a_line_that_was_cut_no_beginning_of_a_value_is_left() -> None:
    mask = Masker([SecretText(PLANTED), SecretText("another-secret")])
    text = f"said {PLANTED[:12]}\nand another-s\nhf_Pl4n at the end: hf_Pl"
    assert mask(text) == "said ***\nand ***\nhf_Pl4n at the end: hf_Pl"


@given(st.lists(st.text(min_size=6, max_size=12), min_size=1, max_size=4), st.text(max_size=60))
def test_no_masked_text_holds_a_value(values: list[str], around: str) -> None:
    values = [value for value in values if len(value.strip()) >= 6 and "*" not in value]
    mask = Masker(SecretText(value) for value in values)
    masked = mask(around + around.join(values))
    assert not [value for value in values if value in masked]


@pytest.mark.parametrize(
    "value",
    [
        f"!!binary {PLANTED}",
        f"!{PLANTED}",
        f"!{PLANTED} {PLANTED}",
        f"[!!binary {PLANTED}]",
        f"{{{PLANTED}, {PLANTED}}}",
        f"*{PLANTED}",
        f"!{PLANTED}! x",
        f"&{PLANTED} [*{PLANTED}1]",
    ],
)
def test_what_yaml_makes_of_one_is_told_without_it(value: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_with_secrets(text(experiment=f"{{HF_TOKEN: {value}}}"), "e.yaml")
    assert "e.yaml:8:" in str(caught.value)
    assert PLANTED not in str(caught.value)


def test_an_alias_of_what_can_not_be_read_is_told_without_it() -> None:
    anchored = f"{{OPEN: &a !!binary {PLANTED}, HF_TOKEN: *a}}"
    with pytest.raises(ExperimentError) as caught:
        read_with_secrets(text(experiment=anchored), "e.yaml")
    assert PLANTED not in str(caught.value)


def test_a_number_too_large_is_repeated_where_it_is_no_secret() -> None:
    for name, is_told in (("HF_TOKEN", False), ("OPEN", True)):
        with pytest.raises(ExperimentError) as caught:
            read_with_secrets(text(experiment=f"{{{name}: 12345e999}}"), "e.yaml")
        assert ("12345e999" in str(caught.value)) == is_told


@pytest.mark.parametrize("written", [PLANTED, f"[{PLANTED}]", f"{{{PLANTED}: token}}", "{key: a}"])
def test_a_secret_of_the_cluster_takes_its_name_and_key_and_no_value(written: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment(f"kubernetes: {{secrets: {{HF_TOKEN: {written}}}}}\n{text()}", "e.yaml")
    told = str(caught.value)
    assert told.startswith("e.yaml:1:24: a variable of `secrets` takes the name of a Secret")
    assert "hint: `HF_TOKEN: {secret: hf, key: token}`" in told
    assert PLANTED not in told
