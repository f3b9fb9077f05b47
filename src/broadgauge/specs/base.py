"""What do all parts of an experiment file have in common?"""

import re
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Lower-case words with `-`, `_` and `.`: names become file names and labels."""

EnvironmentVariables = dict[
    Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str
]


class Spec(BaseModel):
    """Frozen, strict about keys: an unknown key in an experiment is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    planned: ClassVar[dict[str, str]] = {}
    """Keys the design has a place for and that are not there yet, with what they will mean."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_planned(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key in cls.planned:
                    raise ValueError(not_yet(key, cls.planned[key]))
        return data


def not_yet(what: str, meaning: str) -> str:
    """The one sentence for a value that a later version brings."""
    return f"`{what}` ({meaning}) is planned and not there yet"


def is_name(text: str) -> bool:
    """Can this text name a network, a workload or an experiment?"""
    return re.fullmatch(NAME_PATTERN, text) is not None
