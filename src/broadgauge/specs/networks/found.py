"""By what does a node reach the others over a network that was there before us?"""

import ipaddress
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from broadgauge.specs.networks.face import NetworkFace

InterfaceName = Annotated[str, StringConstraints(pattern=r"^[^\s/,=]{1,15}$")]
"""As the kernel allows it, less what would mean two to Gloo or NCCL."""


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Found(NetworkFace):
    """Where a network is found on each node. Exactly one of `interface` and `subnet`."""

    interface: Annotated[tuple[InterfaceName, ...], BeforeValidator(_as_list)] | None = Field(
        default=None, min_length=1, max_length=64
    )
    """Its name, or several that are used together."""
    subnet: str | None = None
    """The addresses on it, `10.0.1.0/24`: each node's interface that has one of them."""

    @field_validator("subnet")
    @classmethod
    def _is_a_subnet(cls, subnet: str | None) -> str | None:
        if subnet is not None:
            try:
                ipaddress.ip_network(subnet)
            except ValueError as error:
                raise ValueError(f"no subnet: {error}") from error
        return subnet

    @model_validator(mode="after")
    def _one_way(self) -> "Found":
        if (self.interface is None) == (self.subnet is None):
            raise ValueError("exactly one of `interface` and `subnet`")
        return self

    @property
    def key(self) -> str:
        return "found"

    @property
    def place(self) -> str:
        return f"found at {self.subnet or ' and '.join(self.interface or ())}"

    @property
    def num_nics(self) -> int:
        """Of a subnet, the one that has an address of it."""
        return len(self.interface or ("of the subnet",))
