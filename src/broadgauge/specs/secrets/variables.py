"""What may an experiment say of a rank's variable: its value, or where the value comes from?

A secret's value is in no model: it is taken out of the text before anything is validated
(specs/secrets/taking.py), and what stands here instead can be dumped, hashed and mailed.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    SerializerFunctionWrapHandler,
    StringConstraints,
    Tag,
    field_validator,
    model_serializer,
)

from broadgauge.messages.launcher_variables import is_set_by_a_launcher
from broadgauge.specs.base import Spec, placed_error
from broadgauge.specs.secrets.names import is_secret, without_credentials

VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"


class FromEnvironment(Spec):
    """A secret: the ranks get what the variable is in your environment, and no file has it."""

    from_environment: Literal[True]
    """Always `true`. What is declared so is a secret, whatever its name."""
    shown: str | None = None
    """Of a URL with a password in it: the rest, which tells two of them apart. Broadgauge writes
    this; a run goes on only with a URL that is the same but for the password."""

    @field_validator("from_environment", mode="before")
    @classmethod
    def _is_true(cls, value: Any) -> Any:
        """In words without the value, which may be the secret."""
        if value is not True:
            raise placed_error("`from_environment` takes `true`, and no value", ())
        return value

    @field_validator("shown")
    @classmethod
    def _shows_no_credentials(cls, shown: str | None) -> str | None:
        if shown is not None and without_credentials(shown) != shown:
            raise placed_error("`shown` is written by Broadgauge, and holds no password", ())
        return shown

    @model_serializer(mode="wrap")
    def _without_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        form: dict[str, Any] = handler(self)
        return {key: value for key, value in form.items() if value is not None}


def _check_name(name: str) -> str:
    if is_set_by_a_launcher(name):
        raise ValueError("a launcher sets this variable for each rank")
    return name


def _check_value(value: str) -> str:
    if "\0" in value:
        raise ValueError("a variable can't hold a NUL character")
    return value


def _form_of(value: Any) -> str:
    return "declared" if isinstance(value, (dict, FromEnvironment)) else "text"


Variable = Annotated[
    Annotated[str, AfterValidator(_check_value), Tag("text")]
    | Annotated[FromEnvironment, Tag("declared")],
    Discriminator(_form_of),
]
"""Text, or a declared secret."""


def _hold_no_secret(variables: dict[str, str | FromEnvironment]) -> Any:
    """A secret's value was to be taken out before: here it would be written into every file."""
    for name, value in variables.items():
        if isinstance(value, str) and holds_secret(name, value):
            raise placed_error(
                f"`{name}` is a secret, whose value can't stand here",
                (name,),
                f"{name}: {{from_environment: true}}",
            )
    return variables


def holds_secret(name: str, value: str) -> bool:
    """Is this value one that must not be stored?"""
    return is_secret(name) or without_credentials(value) != value


EnvironmentVariables = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN), AfterValidator(_check_name)],
        Variable,
    ],
    AfterValidator(_hold_no_secret),
]
"""By name."""
