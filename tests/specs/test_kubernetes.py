"""Which volumes may a pod of ours have, and where? What may a manifest not show?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from broadgauge.specs.kubernetes import OURS, Kubernetes, Volume


def at(*mounts: str) -> Kubernetes:
    volumes = [{"name": f"v{n}", "mount": mount} for n, mount in enumerate(mounts)]
    return Kubernetes.model_validate({"volumes": volumes})


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ("/broadgauge", "own folder"),
        ("//broadgauge/", "own folder"),
        ("/broadgauge/orders", "own folder"),
        ("/data/../broadgauge", "own folder"),
        ("/./broadgauge//program", "own folder"),
        ("/dev/shm/", "memory volume already"),
        ("/dev//shm", "memory volume already"),
        ("/dev/shm/x", "memory volume already"),
        ("/proc/sys", "`/proc/sys` hides"),
        ("/", "`/` hides"),
        ("//", "`/` hides"),
        ("/usr/../proc", "`/proc` hides"),
    ],
)
def test_a_volume_hides_nothing_that_a_pod_needs(mount: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        at(mount)


@pytest.mark.parametrize("second", ["/data", "/data/", "//data", "/x/../data"])
def test_two_volumes_are_not_at_one_path(second: str) -> None:
    with pytest.raises(ValidationError, match="two volumes at `/data`"):
        at("/data", second)
    assert len(at("/data", "/data/more", "/broadgauges").volumes) == 3


@given(
    parts=st.lists(st.sampled_from(["..", ".", "", "a", "broadgauge", "shm", "dev"]), max_size=6)
)
def test_a_path_is_what_a_kernel_makes_of_it(parts: list[str]) -> None:
    """A stack of names, as the kernel walks it."""
    walked: list[str] = []
    for part in parts:
        if part == "..":
            walked = walked[:-1]
        elif part not in ("", "."):
            walked.append(part)
    path = "/" + "/".join(walked)
    volume = Volume.model_construct(name="v", mount="/" + "/".join(parts))
    assert volume.path == path
    assert (path == OURS or path.startswith(f"{OURS}/")) is (walked[:1] == ["broadgauge"])


def prepared(**prepare: Any) -> Kubernetes:
    volumes = [{"name": "data", "mount": "/data"}]
    return Kubernetes.model_validate({"volumes": volumes, "prepare": {"volume": "data", **prepare}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", "https://user:HIDDEN@models.example.com/m.tar"),
        ("model", "https://HIDDEN@models.example.com/m.tar"),
        ("dataset", "HTTPS://h.example.com/m.tar?v=1&X-Amz-Signature=HIDDEN"),
        ("dataset", "https://h.example.com/m.tar?X%2DGoog-Signature=HIDDEN"),
        ("model", "https://h.example.com/m.tar?sv=2024&sig=HIDDEN"),
        ("model", "https://h.example.com/m.tar?token=HIDDEN"),
        ("command", ["curl", "https://user:HIDDEN@models.example.com/m.tar"]),
    ],
)
def test_url_with_credentials_is_refused_and_not_shown(key: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        prepared(**{key: value})
    (problem,) = refused.value.errors(include_input=False)
    assert problem["ctx"]["path"][0] == key
    assert "***" in problem["msg"]
    assert "HIDDEN" not in problem["msg"]
    assert "kubernetes.secrets" in problem["ctx"]["hint"]


@pytest.mark.parametrize(
    "model",
    [
        *("https://user:HIDDEN HIDDEN@h.example.com/m", "https://user:HIDDEN/a@h.example.com/m"),
        *("https://user:HIDDEN?a@h.example.com/m", "hf://HIDDEN@org/m", "https://[HIDDEN/m"),
    ],
)
def test_password_that_is_not_escaped_is_refused_and_not_shown(model: str) -> None:
    with pytest.raises(ValidationError) as refused:
        prepared(model=model)
    (problem,) = refused.value.errors(include_input=False)
    assert problem["ctx"]["path"][0] == "model"
    assert "***" in problem["msg"]
    assert "HIDDEN" not in problem["msg"]
    assert "kubernetes.secrets" in problem["ctx"]["hint"]


@pytest.mark.parametrize(
    "model",
    ["http://[::1]:8080/m@1.tar", "file:///models/a@b.tar", "https://h.example.com:8443/a b.tar"],
)
def test_url_with_a_port_or_an_at_sign_in_its_path_is_taken(model: str) -> None:
    prepare = prepared(model=model).prepare
    assert prepare is not None
    assert prepare.model == model


@pytest.mark.parametrize(
    "model",
    ["ibm-granite/granite-3.1-8b", "https://h.example.com/m.tar?download=true", "/models/a@b"],
)
def test_source_without_credentials_is_taken(model: str) -> None:
    prepare = prepared(model=model).prepare
    assert prepare is not None
    assert prepare.model == model


def test_command_that_reads_its_secret_from_a_variable_is_taken() -> None:
    fetch = "curl https://h.example.com/m.tar?token=$TOKEN"
    prepare = prepared(command=["sh", "-c", fetch]).prepare
    assert prepare is not None
    assert prepare.command == ("sh", "-c", fetch)


@pytest.mark.parametrize("number", [-1, 2**31, "root"])
def test_a_user_is_a_number_that_kubernetes_takes(number: object) -> None:
    with pytest.raises(ValidationError, match="run_as_user"):
        Kubernetes.model_validate({"run_as_user": number})
    assert Kubernetes.model_validate({"run_as_user": 2**31 - 1}).run_as_user == 2**31 - 1
