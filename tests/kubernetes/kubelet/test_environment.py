"""Proves environment.py: `$(VAR)`, fields, resources and references as a kubelet resolves them."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly
from tests.kubernetes.kubelet.environment import (
    ConfigError,
    command_line,
    container_environment,
    downward_lines,
    expand,
    field_of_pod,
    quantity,
    resource_of_container,
)

from broadgauge.agent.pod.status import read_annotations

Json = dict[str, Any]
POD: Json = {
    "metadata": {
        "name": "ranks-0",
        "namespace": "team",
        "uid": "u-1",
        "labels": {"job": "ranks"},
        "annotations": {"a.b/c": "see"},
    },
    "spec": {"nodeName": "node-a", "containers": [
        {"name": "side", "resources": {"limits": {"cpu": "250m"}}}]},
    "status": {"podIP": "10.88.0.5", "podIPs": [{"ip": "10.88.0.5"}], "hostIP": "127.77.0.1"},
}  # fmt: skip
OBJECTS: dict[tuple[str, str], Json] = {
    ("configmaps", "settings"): {"data": {"RATE": "10", "not a name": "x"}},
    ("secrets", "token"): {"data": {"HF": base64.b64encode(b"se=cret").decode()}},
}


def fetch(kind: str, name: str) -> Json | None:
    return OBJECTS.get((kind, name))


def environment(env: list[Json], **container: Any) -> dict[str, str]:
    return container_environment({"name": "main", "env": env, **container}, POD, fetch)


def source(kind: str, name: str, key: str, **rest: Any) -> Json:
    return {"name": "X", "valueFrom": {kind: {"name": name, "key": key, **rest}}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(A)", "1"),
        ("a$(A)b$(B-C.d)", "a1b2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
    ],
)
def test_references_to_variables(text: str, value: str) -> None:
    assert expand(text, {"A": "1", "B-C.d": "2"}) == value


def test_a_variable_sees_only_those_before_it() -> None:
    found = environment(
        [{"name": "A", "value": "$(B)"}, {"name": "B", "value": "x"},
         {"name": "C", "value": "$(B)$(RATE)"}, {"name": "EMPTY"}],
        envFrom=[{"configMapRef": {"name": "settings"}}],
    )  # fmt: skip
    assert found == {"RATE": "10", "A": "$(B)", "B": "x", "C": "x10", "EMPTY": ""}


def test_whole_objects_have_a_prefix_and_may_be_absent() -> None:
    """A key that is no variable's name is left out, as the kubelet does."""
    found = environment(
        [],
        envFrom=[
            {"configMapRef": {"name": "settings"}, "prefix": "P_"},
            {"secretRef": {"name": "token"}},
            {"secretRef": {"name": "none", "optional": True}},
        ],
    )
    assert found == {"P_RATE": "10", "HF": "se=cret"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (source("secretKeyRef", "none", "k"), 'secret "none" not found'),
        (source("configMapKeyRef", "none", "k"), 'configmap "none" not found'),
        (source("secretKeyRef", "token", "k"), "couldn't find key k in Secret team/token"),
        (source("configMapKeyRef", "settings", "k"), "key k in ConfigMap team/settings"),
        ({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "spec.what"}}}, "not supported"),
        ({"name": "X", "valueFrom": {"fileKeyRef": {}}}, "invalid valueFrom"),
    ],
)
def test_what_is_missing_is_said_in_the_kubelets_words(entry: Json, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        environment([entry])


def test_what_is_optional_and_missing_leaves_the_variable_out() -> None:
    assert environment([source("secretKeyRef", "none", "k", optional=True)]) == {}
    assert environment([source("configMapKeyRef", "settings", "k", optional=True)]) == {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "ranks-0"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['job']", "ranks"),
        ("metadata.annotations['a.b/c']", "see"),
        ("metadata.annotations['none']", ""),
        ("metadata.labels", 'job="ranks"'),
        ("spec.nodeName", "node-a"),
        ("status.podIP", "10.88.0.5"),
        ("status.podIPs", "10.88.0.5"),
        ("status.hostIP", "127.77.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert field_of_pod(POD, path) == value


def test_a_downward_file_is_sorted_and_quoted_as_go_does() -> None:
    text = downward_lines({"b": '[{"a": "é\\"}]\n', "a": "\x1b\x00\t\u00a0"})
    assert text == 'a="\\x1b\\x00\\t\\u00a0"\nb="[{\\"a\\": \\"é\\\\\\"}]\\n"'


@costly(40)
@given(st.dictionaries(st.sampled_from(["a", "b/c"]), st.text()))
def test_a_downward_file_is_read_by_the_product(annotations: dict[str, str]) -> None:
    assert read_annotations(downward_lines(annotations)) == annotations


@pytest.mark.parametrize(
    ("text", "number"),
    [("1500m", 1.5), ("2Gi", 2**31), ("1e3", 1000), ("5E", 5e18), (".5", 0.5), ("7", 7), (3, 3)],
)
def test_quantities(text: str, number: float) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "1 Gi", "1ki"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ConfigError, match="is no quantity"):
        quantity(text)


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "64"),
        ({"resource": "limits.cpu", "containerName": "side", "divisor": "0"}, "1"),
        ({"resource": "requests.memory"}, "0"),
    ],
)
def test_resources_are_rounded_up_to_their_divisor(reference: Json, value: str) -> None:
    container = {"name": "main", "resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}}}
    assert resource_of_container(reference, container, POD) == value


@pytest.mark.parametrize(
    ("container", "argv"),
    [
        ({}, ["enter", "run"]),
        ({"args": ["$(A)"]}, ["enter", "1"]),
        ({"command": ["own"]}, ["own"]),
        ({"command": ["own"], "args": ["$$(A)"]}, ["own", "$(A)"]),
    ],
)
def test_a_command_replaces_the_images_entrypoint_and_command(
    container: Json, argv: list[str]
) -> None:
    assert command_line(container, {"A": "1"}, (["enter"], ["run"])) == argv
