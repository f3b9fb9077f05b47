"""Holds the rule that a number's unit is the end of its name."""

import builtins
import dataclasses
import importlib
import pkgutil
import typing

import pydantic

import broadgauge
from broadgauge.specs.workloads.metrics import METRICS, REGISTRY, unit_of

PURE = (
    "messages",
    "specs",
    "catalog",
    "engine",
    "platforms",
    "results",
    "advise",
    "analysis",
    "report",
)
UNITLESS = {
    "at_least": "a bound, in the unit of the hypothesis' metric",
    "at_most": "as at_least",
    "factor": "of a series of sizes: a pure number",
    "alpha": "of LoRA, the field's own word: over the rank, a pure number",
    "learning_rate": "the field's own word; per step, no unit",
    "parameter_checksum": "a sum of weights",
    "value": "Estimate: the unit is the metric's, which the mapping that holds it names",
    "low": "Estimate: as value",
    "high": "Estimate: as value",
    "flops_per_step": "model FLOPs of a rank",
    "seconds": "of each iteration or step: the unit itself",
    "count": "StepCollective: times a step, the mean of several",
    "scale": "of a metric: what a printed number is multiplied by",
    "p_value": "a probability, the field's own word",
    "spread_log_sd": "standard deviation of a natural logarithm: a pure number",
    "constants": "by name, which ends with its unit",
    "figures": "as constants",
}
OF_ANY_UNIT = (
    "broadgauge.results.statistics",
    "broadgauge.results.student",
    "broadgauge.report.charts.points",
    "broadgauge.catalog.articles",
)
"""They compute with or draw samples of any quantity; whoever calls them knows the unit. The
articles' file has the keys that the figures were published under."""


def modules() -> list[str]:
    names = []
    for room in PURE:
        package = importlib.import_module(f"broadgauge.{room}")
        walked = pkgutil.walk_packages(package.__path__, f"broadgauge.{room}.")
        names += [module.name for module in walked]
    return [name for name in names if name not in OF_ANY_UNIT]


class _Names(dict[str, object]):
    """A module's names; what it imports for type checkers alone is no float."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, object)


def float_fields(module_name: str) -> typing.Iterator[str]:
    module = importlib.import_module(module_name)
    for name, item in vars(module).items():
        if not isinstance(item, type) or item.__module__ != module_name:
            continue
        if dataclasses.is_dataclass(item):
            hints = typing.get_type_hints(item, localns=_Names(vars(module)))
            fields = {field.name: hints[field.name] for field in dataclasses.fields(item)}
        elif issubclass(item, pydantic.BaseModel):
            fields = {key: field.annotation for key, field in item.model_fields.items()}
        else:
            continue
        for key, annotation in fields.items():
            if annotation is float or float in typing.get_args(annotation):
                yield f"{name}.{key}"


def test_each_float_field_ends_with_its_unit() -> None:
    fields = [(name, field) for name in modules() for field in float_fields(name)]
    keys = {(name, field): field.split(".")[1] for name, field in fields}
    assert len(keys) > 100
    assert [at for at, key in keys.items() if unit_of(key) is None and key not in UNITLESS] == []


def test_each_metric_has_a_unit_and_a_meaning() -> None:
    for metric in REGISTRY.values():
        assert metric.unit is not None
        assert len(metric.meaning) > 10


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert version("broadgauge") == broadgauge.__version__


def test_no_two_metrics_have_one_name() -> None:
    assert len(REGISTRY) == len(METRICS)
