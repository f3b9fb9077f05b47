"""What may stand in an experiment file, as a JSON Schema for editors and for reading?

It is pydantic's schema of the models, with what happens before they see the data: text may bring
its unit (specs/units.py), one word may stand for a list of one or for a model (like.py), lists in
entries of `networks` and `workloads` expand (axes.py), and `extends` fills in what is left out
(extending.py).
Descriptions are the docstrings of the fields.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from broadgauge.specs.base import InOneWord
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.axes import EXPANDED, NEVER_AXES
from broadgauge.specs.text.extending import EXTENDS, MERGED_BY_NAME
from broadgauge.specs.text.fields import models_in, models_taken, takes_list
from broadgauge.specs.units import (
    parse_byte_rate,
    parse_rate_gbps,
    parse_size_bytes,
    parse_time_s,
    parse_token_count,
)

Form = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:broadgauge:experiment"
"""A name, and no address: the schema is what the installed version prints."""
EXTENDS_FORM: Form = {
    "type": "string",
    "description": "The experiment that this one changes: the name of an example, or a path from "
    "this file's folder. Mappings merge, and so do entries of `networks`, `storages`, "
    "`workloads` and `hypotheses` with the same `name`; other lists and values are replaced.",
}
AXIS = "A list is an axis: an entry for each value."
UNITS = {
    parse_byte_rate: "500 MB/s",
    parse_rate_gbps: "10 Gbit/s",
    parse_size_bytes: "64 MiB",
    parse_time_s: "500 ms",
    parse_token_count: "300B",
}
"""What reads text with a unit, and an example of it."""
TELLING = ("name", "kind", "phase", "path")
"""What tells one entry, or one kind of entry, from another: the rest may come from `extends`."""
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""Pydantic's words for bounds behind a validator, and JSON Schema's."""


def experiment_schema() -> Form:
    """JSON Schema, draft 2020-12."""
    schema = Experiment.model_json_schema(schema_generator=_Generator)
    forms = {"Experiment": schema, **schema["$defs"]}
    of_entries = _models_of_entries()
    for model in _all_models(Experiment):
        form, documented = forms[model.__name__], field_docstrings(model)
        for key, field in model.model_fields.items():
            is_axis = model in of_entries and key not in NEVER_AXES
            if is_axis and not takes_list(field.annotation):
                form["properties"][key] = _with_axis(form["properties"][key])
            _describe(form["properties"][key], documented.get(key))
    _let_like_say_the_kind(forms.values())
    for entry in _models_in_lists(MERGED_BY_NAME):
        form = forms[entry.__name__]
        form["required"] = [key for key in form.get("required", ()) if key in TELLING]
    required = schema.pop("required")
    schema["anyOf"] = [{"required": required}, {"required": [EXTENDS]}]
    schema["properties"] = {EXTENDS: EXTENDS_FORM, **schema["properties"]}
    return {"$schema": DIALECT, "$id": SCHEMA_ID, **schema}


class _Generator(GenerateJsonSchema):
    """Knows what stands before a field's validation."""

    def function_before_schema(self, schema: Any) -> JsonSchemaValue:
        form = super().function_before_schema(schema)
        function = schema["function"]["function"]
        if function in UNITS:
            return {"anyOf": [form, {"type": "string", "examples": [UNITS[function]]}]}
        if isinstance(function, InOneWord):
            return {"anyOf": [form, {"type": "string"}]}
        if form.get("type") == "array" and "items" in form:
            return {"anyOf": [form["items"], form]}
        return form

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        """Of models that something else than a key tells apart, data may fit several."""
        form = super().tagged_union_schema(schema)
        return {"anyOf": form["oneOf"]} if callable(schema["discriminator"]) else form

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        form = super().generate_inner(schema)
        for ours, theirs in _LIMITS.items():
            if ours in form:
                form[theirs] = form.pop(ours)
        if "minLength" in form and form.get("type") != "string":
            form["minItems"] = form.pop("minLength")
        return form


def _let_like_say_the_kind(forms: Iterable[Form]) -> None:
    """Where `like` may name a model, its kind is the model's (like.py)."""
    for form in forms:
        required = form.get("required", [])
        if "kind" in required and "like" in form["properties"]:
            form["required"] = [key for key in required if key != "kind"]
            form["anyOf"] = [{"required": ["kind"]}, {"required": ["like"]}]


def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """What is written below each field, those of the model's bases included."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is not BaseModel and issubclass(base, BaseModel):
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            assert isinstance(definition, ast.ClassDef)
            found |= _below_fields(definition)
    return found


def _below_fields(definition: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = " ".join(inspect.cleandoc(text).split())
    return found


def _describe(form: Form, docstring: str | None) -> None:
    form.pop("title", None)  # pydantic's, which is the key again
    texts = [text for text in (docstring, form.get("description")) if text]
    if texts:
        form["description"] = " ".join(texts)


def _with_axis(form: Form) -> Form:
    """One value, or a list of such; of variables, each of them."""
    if "patternProperties" in form:
        variables = form["patternProperties"].items()
        axes = {pattern: _with_axis(value) for pattern, value in variables}
        return form | {"patternProperties": axes}
    kept = {key: form[key] for key in ("default", "description") if key in form}
    value = {key: part for key, part in form.items() if key not in {*kept, "title"}}
    choices = value["anyOf"] if set(value) == {"anyOf"} else [value]
    axis = {"type": "array", "items": value, "minItems": 1}
    return kept | {"anyOf": [*choices, axis], "description": AXIS}


def _models_in_lists(keys: tuple[str, ...]) -> set[type[BaseModel]]:
    """What the entries of these lists are read as."""
    return {model for key in keys for model in models_in(Experiment.model_fields[key].annotation)}


def _models_of_entries() -> set[type[BaseModel]]:
    """Every model whose lists are axes: entries, and the mappings in them."""
    to_do, found = list(_models_in_lists(EXPANDED)), set[type[BaseModel]]()
    while to_do:
        model = to_do.pop()
        found.add(model)
        for field in model.model_fields.values():
            to_do += [each for each in models_taken(field.annotation) if each not in found]
    return found


def _all_models(root: type[BaseModel]) -> set[type[BaseModel]]:
    to_do, found = [root], set[type[BaseModel]]()
    while to_do:
        model = to_do.pop()
        found.add(model)
        for field in model.model_fields.values():
            to_do += [each for each in models_in(field.annotation) if each not in found]
    return found
