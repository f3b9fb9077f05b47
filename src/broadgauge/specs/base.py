"""What do all parts of an experiment file have in common?"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from broadgauge.wording import near_words

did_you_mean = near_words.did_you_mean

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Lower-case words with `-`, `_` and `.`: names become file names and labels."""


AS_STORED = {"read": "as stored"}
"""Context of a validation: what is read comes from a run folder, perhaps of a later version."""


class StoredModel(BaseModel):
    """Something read back from a run folder: unknown keys are ignored, so old readers live."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Spec(BaseModel):
    """Frozen, strict about keys: an unknown key in an experiment is an error.

    In a run folder it is ignored, so that old readers live (`context=AS_STORED`).
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    planned: ClassVar[dict[str, str]] = {}
    """Keys the design has a place for and that are not there yet, with what they will mean."""

    @model_validator(mode="before")
    @classmethod
    def _ignore_unknown(cls, data: Any, info: ValidationInfo) -> Any:
        if info.context is AS_STORED and isinstance(data, dict):
            return {key: value for key, value in data.items() if key in cls.model_fields}
        return data

    @model_validator(mode="before")
    @classmethod
    def _refuse_planned(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, dict) and info.context is not AS_STORED:
            for key in data:
                if key in cls.planned:
                    raise placed_error(not_yet(key, cls.planned[key]), (key,))
        return data

    @model_validator(mode="before")
    @classmethod
    def _refuse_booleans_as_numbers(cls, data: Any) -> Any:
        check_no_boolean_number(cls, data)
        return data


def check_no_boolean_number(model: type[BaseModel], data: Any) -> None:
    """Python counts `true` as 1; nobody who writes `launches: true` means one launch.

    Raises an error of pydantic's with the place.
    """
    for key in _number_fields(model) & data.keys() if isinstance(data, dict) else ():
        for path, item in _items(key, data[key]):
            if isinstance(item, bool):
                raise placed_error(f"`{key}` takes no `{str(item).lower()}`", path)


def _items(key: str, value: Any) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, (list, tuple)):
        return [((key, i), item) for i, item in enumerate(value)]
    return [((key,), value)]


@cache
def _number_fields(model: type[BaseModel]) -> frozenset[str]:
    """The fields with a number among their types, and no boolean."""
    types = {name: set(_leaves(field.annotation)) for name, field in model.model_fields.items()}
    names = {name for name, leaves in types.items() if leaves & {int, float} and bool not in leaves}
    return frozenset(names | {model.model_fields[name].alias or name for name in names})


def _leaves(annotation: Any) -> list[Any]:
    arguments = get_args(annotation)
    return [leaf for part in arguments for leaf in _leaves(part)] if arguments else [annotation]


def not_yet(what: str, meaning: str) -> str:
    """The one sentence for a value that a later version brings."""
    return f"`{what}` ({meaning}) is planned and not there yet"


def placed_error(message: str, path: tuple[str | int, ...], hint: str | None = None) -> ValueError:
    """An error of a rule over several parts of a file, which names the part to blame."""
    return PydanticCustomError(
        "placed", "{message}", {"message": message, "path": path, "hint": hint}
    )


@dataclass(frozen=True, slots=True)
class InOneWord:
    """What stands before the validation of an object that may be one word, the value of `key`."""

    key: str

    def __call__(self, value: Any) -> Any:
        return {self.key: value} if isinstance(value, str) else value
