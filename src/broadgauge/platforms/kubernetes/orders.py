"""How is a leader in a pod told something? Each order is a file of a folder that it looks into: a
key of a ConfigMap."""

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import replace

from broadgauge.manifests.names import orders_name
from broadgauge.manifests.run_job import order_key
from broadgauge.messages.codec import encode
from broadgauge.messages.leader import LeaderOrder, TakeJobs
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import CONFIG_MAPS, PODS
from broadgauge.platforms.led.handle import LinkLost
from broadgauge.specs.errors import PlatformError, UncollectedError

ORDER_ANNOTATION = "broadgauge.dev/order"
"""A pod that changes is looked at by its kubelet, which then refreshes its volumes."""
_NOT_LET_IN = (401, 403)
"""What the API server says to who has no right any more, and may have it again."""
_NEVER_TAKEN = (*_NOT_LET_IN, 400, 404, 413, 422)
"""What the API server says to an order that it will not take by itself later either."""


def order_bytes(order: LeaderOrder) -> bytes:
    """As a leader in a pod reads it; equal orders, equal bytes."""
    return gzip.compress(json.dumps(encode(order)).encode(), mtime=0)


def with_number_used(place: JobPlace) -> JobPlace:
    """What is known of the job before its next order is put. A number is never given twice: one
    that failed may have come."""
    return replace(place, next_order=place.next_order + 1)


def with_order_taken(place: JobPlace, order: LeaderOrder) -> JobPlace:
    """What is known of the job once the order is there."""
    generation = order.generation if isinstance(order, TakeJobs) else place.generation
    return replace(place, generation=generation)


def put_order(
    api: Api,
    place: JobPlace,
    order: LeaderOrder,
    *,
    first_pod: str | None,
    is_gone: Callable[[], bool],
) -> None:
    """Where its leader finds it. `place`: its number is the last that was used.
    `first_pod`: where the leader is. Raises LinkLost; PlatformError where it will never be taken.
    """
    number = place.next_order - 1
    keys: dict[str, str | None] = {order_key(number): base64.b64encode(order_bytes(order)).decode()}
    if isinstance(order, TakeJobs):  # instead of all before it, which would fill the ConfigMap
        keys |= {order_key(each): None for each in range(number)}
    name = f"job {place.name} in namespace {place.namespace}"
    try:
        api.merge(CONFIG_MAPS, place.namespace, orders_name(place), {"binaryData": keys})
    except ApiError as error:
        # What is beside a job goes with it: then there is nobody to be told.
        is_refused = error.status in _NEVER_TAKEN and not error.is_passing
        if is_refused and not (error.status == 404 and is_gone()):
            form = UncollectedError if error.status in _NOT_LET_IN else PlatformError
            raise refusal(error, f"telling {name} what to do", form) from error
        raise LinkLost(f"{name} can't be told anything: {error}") from error
    if first_pod is not None:
        _hasten(api, place.namespace, first_pod, number)


def _hasten(api: Api, namespace: str, pod: str, number: int) -> None:
    """Have the kubelet refresh the orders now; who may not change a pod waits a minute for it."""
    annotation = {"metadata": {"annotations": {ORDER_ANNOTATION: str(number)}}}
    try:
        api.merge(PODS, namespace, pod, annotation)
    except ApiError:
        return  # it refreshes them by itself: nothing is lost but time
