"""How is a bucket read and written without a mount? By s3fs, the extra broadgauge[storage]."""

import os
from typing import Any

from broadgauge.messages.storage import ObjectPlace
from broadgauge.probes.trial import RefusedError

SECRET_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_stores: dict[tuple[int, str | None], Any] = {}


def storage_options(objects: ObjectPlace) -> dict[str, Any]:
    """What fsspec needs for this store; nothing of a listing or of content is kept."""
    return {
        "endpoint_url": objects.endpoint,
        "use_listings_cache": False,
        "default_cache_type": "none",
        "config_kwargs": {
            "s3": {"addressing_style": "path" if objects.endpoint else "auto"},
            "max_pool_connections": 32,
        },
    }


def open_store(objects: ObjectPlace) -> Any:
    """fsspec's file system of the store: one for each process, since its thread does not live on
    in a fork. Credentials come from the environment."""
    key = (os.getpid(), objects.endpoint)
    if key not in _stores:
        try:
            import s3fs
        except ImportError as error:
            raise RefusedError(
                f"s3://{objects.bucket} is read and written by s3fs, which is not installed\n"
                "hint: pip install 'broadgauge[storage]'"
            ) from error
        _stores[key] = s3fs.S3FileSystem(skip_instance_cache=True, **storage_options(objects))
    return _stores[key]


def key_of(objects: ObjectPlace, name: str) -> str:
    """`bucket/prefix/name`."""
    return "/".join(part for part in (objects.bucket, objects.prefix.strip("/"), name) if part)


def within_prefix(objects: ObjectPlace, folder: str) -> ObjectPlace:
    prefix = "/".join(part for part in (objects.prefix.strip("/"), folder) if part)
    return ObjectPlace(bucket=objects.bucket, prefix=prefix, endpoint=objects.endpoint)


def masked(text: str) -> str:
    """The text without credentials, which a server may repeat."""
    for variable in SECRET_VARIABLES:
        if secret := os.environ.get(variable):
            text = text.replace(secret, "***")
    return text
