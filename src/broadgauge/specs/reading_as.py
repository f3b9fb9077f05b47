"""Is this text a file of this kind? With the errors that an experiment has."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.overriding import apply_override
from broadgauge.specs.reading import problems_of
from broadgauge.specs.yaml_source import parse_yaml

_Read = TypeVar("_Read", bound=BaseModel)


def read_as(model: type[_Read], text: str, filename: str, overrides: Sequence[str] = ()) -> _Read:
    """The validated file, after overrides like `job.saves=24`. Raises ExperimentError."""
    document = parse_yaml(text, filename)
    if not isinstance(document.data, dict):
        raise ExperimentError(
            [Problem(document.where(()), "the file is a mapping of keys to values")]
        )
    for override in overrides:
        document = apply_override(document, override)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise ExperimentError(problems_of(document, error, model)) from error
