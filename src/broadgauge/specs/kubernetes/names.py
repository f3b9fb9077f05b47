"""Which texts does a cluster take as names? Checked before anything is sent, with the place.

Source: Kubernetes, "Object Names and IDs" (RFC 1123 labels and subdomains), "Labels and
Selectors" (keys and values), "Extended resources"; apimachinery, util/validation; the references of
container images: distribution/reference.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = (
    rf"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?"
    r"(?:@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?"
)
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class NameForm:
    """What a text must be: told in words where it is not; the schema has the pattern."""

    pattern: str
    most: int
    """Characters."""
    words: str

    def takes(self, text: str) -> bool:
        return len(text) <= self.most and re.fullmatch(self.pattern, text) is not None

    def check(self, text: str) -> str:
        if not self.takes(text):
            raise ValueError(f"`{text[:_LONGEST_SHOWN]}` is none: {self.words}")
        return text

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(schema) | {"pattern": f"^{self.pattern}$", "maxLength": self.most}


_WORDS = "lower-case letters, digits and hyphens, at most 63, like `training`"
LabelName = Annotated[str, NameForm(LABEL, 63, _WORDS)]
"""Of a namespace, a volume, a container: a DNS label."""
_WORDS = "lower-case letters, digits, hyphens and dots, at most 253, like `my-claim`"
ObjectName = Annotated[str, NameForm(SUBDOMAIN, 253, _WORDS)]
_WORDS = "a label's key is like `gpu` or `nvidia.com/gpu.product`"
LabelKey = Annotated[str, NameForm(rf"({SUBDOMAIN}/)?{_QUALIFIED}", 317, _WORDS)]
_WORDS = "a label's value has letters, digits, `-`, `_` and `.`, at most 63"
LabelValue = Annotated[str, NameForm(rf"({_QUALIFIED})?", 63, _WORDS)]
_WORDS = "an extended resource is like `nvidia.com/gpu`, or `rdma/rdma_shared_device_eth`"
ResourceName = Annotated[str, NameForm(rf"{SUBDOMAIN}/{_QUALIFIED}", 317, _WORDS)]
_WORDS = "an image is like `registry.example/team/train:1.4`"
ImageName = Annotated[str, NameForm(_IMAGE, 512, _WORDS)]
SecretKey = Annotated[str, StringConstraints(pattern=r"^[-._A-Za-z0-9]+$", max_length=253)]
MountPath = Annotated[str, StringConstraints(pattern=r"^/[^\x00:]*$", max_length=1024)]
"""Absolute; the API refuses a colon."""
UserNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""Of a user or group. Source: apimachinery, util/validation, IsValidUserID."""


def is_name(value: object, form: Any) -> bool:
    """Would an experiment take it where a name of this form stands? `form`: `ObjectName`, …"""
    forms = [each for each in get_args(form) if isinstance(each, NameForm)]
    assert forms, form
    return isinstance(value, str) and all(each.takes(value) for each in forms)
