"""What does a field of a model take: one value or a list, and which models inside?"""

import types
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel


def takes_list(annotation: Any) -> bool:
    """May a list stand there as it is? `tuple[int, ...] | None`: yes."""
    origin = get_origin(annotation)
    if origin in (Annotated, Union, types.UnionType):
        return any(takes_list(argument) for argument in get_args(annotation))
    return (origin or annotation) in (tuple, list)


def models_taken(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models one of which a mapping there is read as; those in lists are left out."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Annotated, Union, types.UnionType):
        for argument in get_args(annotation):
            yield from models_taken(argument)


TAGS = ("kind", "phase", "attachment")
"""Keys by which models of one place are told apart."""


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model inside an annotation such as `tuple[Annotated[A | B, …], ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def annotations_at(annotation: Any, key: str) -> tuple[Any, ...]:
    """What may stand under this key of a mapping read as `annotation`? Empty: nothing may."""
    if get_origin(annotation) is dict:
        return (get_args(annotation)[1],)
    fields = (model.model_fields.get(key) for model in models_taken(annotation))
    return tuple(field.annotation for field in fields if field is not None)


def discriminators(model: type[BaseModel]) -> tuple[str, ...]:
    """The words that its `kind`, `phase` or `attachment` may be; empty where it has none."""
    found = (model.model_fields.get(key) for key in TAGS)
    kinds = (field.annotation for field in found if field is not None)
    return tuple(word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind))


@cache
def alternatives(root: type[BaseModel]) -> dict[str, tuple[type[BaseModel], ...]]:
    """Of each model's name, where a mapping could be read as it or as others: all of them.

    Models that a key tells apart (`kind`, `path`) are no alternatives.
    """
    found: dict[str, tuple[type[BaseModel], ...]] = defaultdict(tuple)
    to_do, done = [root], set[type[BaseModel]]()
    while to_do:
        model = to_do.pop()
        done.add(model)
        for field in model.model_fields.values():
            inside = tuple(models_taken(field.annotation))
            found |= {each.__name__: inside for each in inside if len(inside) > 1}
            to_do += [each for each in models_in(field.annotation) if each not in done]
    return dict(found)
