"""Proves specs/text/schema.py: editors accept what we read, and every key says what it is."""

import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from broadgauge.running.experiments import (
    example_names,
    examples_folder,
    find_model,
    find_storage,
)
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.schema import experiment_schema, field_docstrings

SCHEMA = experiment_schema()
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
KNOWN = {
    *("$schema", "$id"),
    *("$defs", "$ref", "type", "enum", "const", "anyOf", "oneOf", "properties", "required"),
    *("additionalProperties", "patternProperties", "items", "prefixItems", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems"),
    *("minLength", "maxLength", "title", "description", "default", "examples", "discriminator"),
}
"""Of JSON Schema, what ours uses; anything else would go unchecked below."""


def fits(value: Any, form: dict[str, Any]) -> bool:
    """A plain reading of JSON Schema, as an editor's."""
    assert set(form) <= KNOWN, set(form) - KNOWN
    if "$ref" in form and not fits(value, SCHEMA["$defs"][form["$ref"].split("/")[-1]]):
        return False
    if value not in form.get("enum", [value]) or value != form.get("const", value):
        return False
    if "anyOf" in form and not any(fits(value, each) for each in form["anyOf"]):
        return False
    if "oneOf" in form and sum(fits(value, each) for each in form["oneOf"]) != 1:
        return False
    is_of_type = _is_of_type(value, form.get("type"))
    return is_of_type and _fits_bounds(value, form) and _fits_parts(value, form)


def _is_of_type(value: Any, name: str | None) -> bool:
    is_boolean = isinstance(value, bool) and name in ("integer", "number")
    return name is None or (not is_boolean and isinstance(value, TYPES[name]))


def _fits_bounds(value: Any, form: dict[str, Any]) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if "multipleOf" in form and value % form["multipleOf"]:
            return False
        return form.get("minimum", value) <= value <= form.get("maximum", value) and form.get(
            "exclusiveMinimum", value - 1
        ) < value < form.get("exclusiveMaximum", value + 1)
    if isinstance(value, str):
        is_long_enough = form.get("minLength", 0) <= len(value) <= form.get("maxLength", 10**6)
        return is_long_enough and re.search(form.get("pattern", ""), value) is not None
    if isinstance(value, list):
        return form.get("minItems", 0) <= len(value) <= form.get("maxItems", 10**6)
    return True


def _fits_parts(value: Any, form: dict[str, Any]) -> bool:
    if isinstance(value, list):
        first = form.get("prefixItems", [])
        forms = [*first, *[form.get("items", {})] * (len(value) - len(first))]
        return all(fits(item, each) for item, each in zip(value, forms, strict=False))
    if not isinstance(value, dict):
        return True
    if set(form.get("required", ())) - set(value):
        return False
    for key, item in value.items():
        named = form.get("properties", {}).get(key)
        patterns = form.get("patternProperties", {}).items()
        found = (
            [named] if named else [each for pattern, each in patterns if re.search(pattern, key)]
        )
        if not found and form.get("additionalProperties", True) is False:
            return False
        if not all(fits(item, each) for each in found):
            return False
    return True


def load(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


GOOD = """\
name: x
cluster: {shapes: [2x1], backend: [nccl, gloo]}
networks:
  - {name: eth, rate_gbps: [1 Gbit/s, 2.5, null], nics_per_node: [1, nodes], overlay: [null, vxlan]}
  - {name: in, path: [shm, sockets], environment: {A: b, C: [d, e]}}
storages:
  - {name: disk, path: /mnt, emulated: {read: [500 MB/s, 4 Gbit/s], write: 200000000}}
  - {name: mount, path: [/a, /b], like: [s3-mount, sata-ssd], emulated: [false, true]}
environment: {F: {from_environment: true}, HF_TOKEN: of-this-life}
workloads:
  - {kind: train, model: {hidden: [256, 512]}, strategy: [ddp, fsdp], networks: [eth]}
  - {kind: train, name: two, model: [{hidden: 256}, {hidden: 512}], data: {jsonl: [a, b]}}
  - {kind: train, name: named, model: [gpt2, {like: llama3-8b, layers: 8, kv_heads: 4}]}
  - {kind: train, name: llama, model: {kind: llama, kv_heads: 2}}
  - {kind: collectives, name: sent, sizes: {model: gpt2, strategy: [fsdp, hsdp]}}
  - {kind: collectives, sizes: {from_bytes: 1 KiB, to_bytes: [1 MiB, 2 MiB]}, budget_s: 100 ms}
skip_if: [{network: eth, nodes: [1, 2], workload: [train, two]}]
hypotheses: [{name: h, statement: s, cases: {nodes: 2}, over: {nodes: 1}, at_most: 1}]
"""


@pytest.mark.parametrize("name", example_names())
def test_every_example_fits(name: str) -> None:
    text = (examples_folder() / f"{name}.yaml").read_text()
    assert fits(load(text), SCHEMA)


def test_axes_units_and_single_words_fit_as_they_are_read() -> None:
    assert read_experiment(GOOD, "e.yaml", find_model=find_model, find_storage=find_storage)
    assert fits(load(GOOD), SCHEMA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: x", "nam: x"),
        ("name: x", "name: x\nlaunches: [1, 2]"),
        ("name: x", "name: x\nlaunches: 0"),
        ("name: x", "name: x\nextends: [quickstart]"),
        ("name: x", "name: X"),
        ("name: eth", "name: [eth, e]"),
        ("nodes]", "node]"),
        ("vxlan]", "vlan]"),
        ("2.5", "-2.5"),
        ("write: 200000000", "write: 200"),
        ("write: 200000000", "write: 200000000, append: 1 GB/s"),
        ("[false, true]", "fast"),
        ("[shm, sockets]", "[]"),
        ("[shm, sockets]", "shm, rate_gbps: 1"),
        ("{hidden: [256, 512]}", "{hidden: [256, 1]}"),
        ("{kind: llama, kv_heads: 2}", "{kv_heads: 2}"),
        ("{kind: llama, kv_heads: 2}", "{kind: mistral}"),
        ("model: gpt2", "model: 2"),
        ("kind: collectives, sizes: {from", "kind: storage, sizes: {from"),
        ("{nodes: 2}", "{node: 2}"),
        ("{nodes: 2}", "{network: []}"),
        ("[d, e]", "[d, 3]"),
        ("from_environment: true", "from_environment: false"),
        ("from_environment: true", "from_environment: true, value: x"),
    ],
)
def test_what_we_refuse_does_not_fit(old: str, new: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(ExperimentError):
        read_experiment(text, "e.yaml", find_model=find_model, find_storage=find_storage)
    assert not fits(load(text), SCHEMA)


def test_every_key_says_what_it_is() -> None:
    forms = {"Experiment": SCHEMA, **SCHEMA["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, form in forms.items()
        for key, part in form["properties"].items()
        if part.get("description", "").removeprefix("A list is an axis: an entry for each value.")
        == ""
    ]
    assert silent == []


def test_descriptions_are_the_docstrings() -> None:
    said = SCHEMA["properties"]["launches"]["description"]
    assert said == field_docstrings(Experiment)["launches"]
    assert said.startswith("How often each case's ranks are started")
    seen = SCHEMA["$defs"]["Network"]["properties"]["nccl_seen_gbps"]["description"]
    assert "topology file" in seen
    assert seen.endswith("A list is an axis: an entry for each value.")


def test_fields_that_take_lists_are_no_axes() -> None:
    defs = SCHEMA["$defs"]
    for model, key in (("CollectivesWorkload", "ops"), ("Network", "slow_pairs")):
        assert "axis" not in defs[model]["properties"][key]["description"]
    for model, key in (("Network", "name"), ("TrainWorkload", "kind"), ("Cluster", "device")):
        assert "axis" not in defs[model]["properties"][key]["description"]


def test_a_file_that_extends_may_leave_out_the_rest() -> None:
    assert fits({"extends": "quickstart"}, SCHEMA)
    assert fits({"extends": "q", "hypotheses": [{"name": "h", "at_most": 2}]}, SCHEMA)
    assert not fits({"name": "x"}, SCHEMA)


def test_an_editor_knows_the_schemas_language_and_name() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"].startswith("urn:")  # no address that an editor would look up
