"""Is a server that has not read its roles yet told from rights that are gone?"""

from collections.abc import Callable

import pytest
from tests.platforms.kubernetes.fake_api import (
    CONFIG_MAPS,
    NAMESPACE,
    PODS,
    Answer,
    FakeApi,
    FakeTime,
    listed,
    refused,
)

from broadgauge.platforms.kubernetes import api_rights
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.api_rights import SHUT_OUT_LIMIT_S
from broadgauge.platforms.kubernetes.resources import CONFIG_MAPS as CONFIG_MAP_KIND
from broadgauge.platforms.kubernetes.resources import PODS as POD_KIND

SHUT_OUT = refused(
    403,
    "Forbidden",
    'pods is forbidden: User "ada" cannot list resource "pods" in API group "" in the namespace '
    '"training"',
)
"""As RBAC's authorizer has it, also before it has read any role."""


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    found = FakeTime()
    monkeypatch.setattr(api_rights, "time", found)
    return found


def error_of(ask: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask()
    return caught.value


def listing(api: Api) -> Callable[[], object]:
    return lambda: api.list(POD_KIND, NAMESPACE)


def let_in(fake: FakeApi, answer: Answer) -> Api:
    """A client that was let in once, and gets this from then on."""
    api = fake.api()
    fake.script("GET", PODS, listed(), answer)
    listing(api)()
    return api


def test_who_was_never_let_in_may_not(fake: FakeApi, time: FakeTime) -> None:
    fake.script("GET", PODS, SHUT_OUT)
    assert not error_of(listing(fake.api())).is_passing


def test_who_was_let_in_is_shut_out_once_that_has_lasted(fake: FakeApi, time: FakeTime) -> None:
    ask = listing(let_in(fake, SHUT_OUT))
    assert error_of(ask).is_passing
    time.sleep(SHUT_OUT_LIMIT_S - 1)
    assert error_of(ask).is_passing
    time.sleep(2)
    assert not error_of(ask).is_passing
    fake.script("GET", PODS, listed(), SHUT_OUT)
    ask()
    assert error_of(ask).is_passing  # another restart


@pytest.mark.parametrize(
    "message",
    [
        'pods "a" is forbidden: exceeded quota: small, requested: pods=1',
        'admission webhook "v" denied the request: not here',
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": hostNetwork',
    ],
)
def test_a_quota_and_a_policy_mean_what_they_say(
    fake: FakeApi, time: FakeTime, message: str
) -> None:
    assert not error_of(listing(let_in(fake, refused(403, "Forbidden", message)))).is_passing


def test_rights_to_one_kind_say_nothing_of_another(fake: FakeApi, time: FakeTime) -> None:
    api = let_in(fake, SHUT_OUT)
    fake.script("GET", CONFIG_MAPS, SHUT_OUT)
    assert not error_of(lambda: api.list(CONFIG_MAP_KIND, NAMESPACE)).is_passing


def test_rights_to_pods_count_for_their_logs_and_for_one_of_them(
    fake: FakeApi, time: FakeTime
) -> None:
    api = let_in(fake, SHUT_OUT)
    fake.script("GET", f"{PODS}/a", SHUT_OUT)
    fake.script("GET", f"{PODS}/a/log", SHUT_OUT)
    assert error_of(lambda: api.get(POD_KIND, NAMESPACE, "a")).is_passing
    assert error_of(lambda: list(api.log(NAMESPACE, "a", {}, 1.0))).is_passing


def test_credentials_that_are_not_accepted_do_not_pass(fake: FakeApi, time: FakeTime) -> None:
    ask = listing(let_in(fake, refused(401, "Unauthorized", "you cannot")))
    assert not error_of(ask).is_passing
