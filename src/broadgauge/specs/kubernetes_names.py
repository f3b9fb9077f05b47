"""Which texts does a cluster take as names? Checked before anything is sent, with the place.

Source: Kubernetes, "Object Names and IDs" (RFC 1123 labels and subdomains), "Labels and
Selectors" (keys and values), "Extended resources"; apimachinery, util/validation.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

LabelName = Annotated[str, StringConstraints(pattern=rf"^{LABEL}$")]
"""Of a namespace, a volume, a container: a DNS label."""
ObjectName = Annotated[str, StringConstraints(pattern=rf"^{SUBDOMAIN}$", max_length=253)]
LabelKey = Annotated[
    str, StringConstraints(pattern=rf"^({SUBDOMAIN}/)?{_QUALIFIED}$", max_length=317)
]
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({_QUALIFIED})?$", max_length=63)]
ResourceName = Annotated[
    str, StringConstraints(pattern=rf"^{SUBDOMAIN}/{_QUALIFIED}$", max_length=317)
]
"""`nvidia.com/gpu`, `rdma/hca_shared_devices_a`."""
ImageName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]*$", max_length=512)
]
SecretKey = Annotated[str, StringConstraints(pattern=r"^[-._A-Za-z0-9]+$", max_length=253)]
MountPath = Annotated[str, StringConstraints(pattern=r"^/[^\x00:]*$", max_length=1024)]
"""Absolute; the API refuses a colon."""
UserNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""Of a user or group. Source: apimachinery, util/validation, IsValidUserID."""
