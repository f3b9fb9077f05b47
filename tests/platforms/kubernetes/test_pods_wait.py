"""How long are a job's pods waited for, and what is said meanwhile? On a clock of the test's."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.platforms.kubernetes.fake_api import NAMESPACE, FakeApi, FakeTime, listed, pod
from tests.platforms.kubernetes.test_pod_states import CACHE_IS_LATE, waiting
from tests.platforms.kubernetes.test_pod_warnings import EVENTS, event, starting

from broadgauge.platforms.kubernetes import pod_warnings, pods_wait
from broadgauge.platforms.kubernetes.admission import Held
from broadgauge.platforms.kubernetes.pod_states import PodState, pod_state
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.platforms.kubernetes.pods_wait import PodsWait
from broadgauge.specs.errors import PlatformError

LIMIT_S, TRIES_LIMIT_S, NO_PODS_LIMIT_S = 600.0, 120.0, 90.0
RUNNING = pod_state(pod("a"))


class Waiter:
    """One who waits for the pods of job r."""

    def __init__(self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fake, self.time, self.shown = fake, FakeTime(), list[str]()
        self.limit_s, self.limit_hint = LIMIT_S, "`limits: …` waits longer"
        self.num_pods = 1
        for module in (pod_warnings, pods_wait):
            monkeypatch.setattr(module, "time", self.time)
        monkeypatch.setattr(pods_wait, "TRIES_LIMIT_S", TRIES_LIMIT_S)
        monkeypatch.setattr(pods_wait, "NO_PODS_LIMIT_S", NO_PODS_LIMIT_S)

    def wait(self, *looks: list[PodState], queued: Callable[[], Any] = lambda: None) -> None:
        """The pods at each second; the last for ever."""
        seconds = itertools.chain(looks, itertools.repeat(looks[-1]))
        PodsWait(
            name="job r",
            num_pods=self.num_pods,
            limit_s=self.limit_s,
            limit_hint=self.limit_hint,
            controllers=("involvedObject.uid=u",),
            warnings=PodWarnings(api=self.fake.api(), namespace=NAMESPACE),
            queued=queued,
            show=self.shown.append,
        ).until_all_run(lambda: next(seconds), self.time.sleep)

    def refusal(self, *looks: list[PodState], **more: Any) -> PlatformError:
        with pytest.raises(PlatformError) as caught:
            self.wait(*looks, **more)
        return caught.value


@pytest.fixture
def waiter(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Waiter:
    fake.script("GET", EVENTS, listed())
    return Waiter(fake, monkeypatch)


def state(reason: str, message: str) -> PodState:
    return pod_state(pod("a") | {"status": waiting(reason, message)})


def test_a_pod_that_does_not_start_ends_with_the_words_of_its_events(waiter: Waiter) -> None:
    waiter.fake.script("GET", EVENTS, listed(event("FailedMount", "mount.nfs: timed out")))
    error = waiter.refusal([starting()])
    assert error.message == (
        f"job r: after {LIMIT_S:g} s: 1 pod starting (FailedMount: mount.nfs: timed out)"
    )
    assert error.hint == waiter.limit_hint
    assert waiter.shown == ["1 pod starting", "1 pod starting (FailedMount: mount.nfs: timed out)"]


def test_a_secret_that_comes_late_is_waited_for_and_one_that_is_not_there_is_not(
    waiter: Waiter,
) -> None:
    late = state("CreateContainerConfigError", CACHE_IS_LATE)
    waiter.wait(*[[late]] * 20, [RUNNING])
    assert waiter.shown == [f"1 pod starting (CreateContainerConfigError: {CACHE_IS_LATE})"]
    began_s = waiter.time.now_s
    error = waiter.refusal([state("CreateContainerConfigError", 'secret "hf" not found')])
    assert 'secret "hf" not found' in error.message
    assert waiter.time.now_s == began_s


@pytest.mark.parametrize(
    ("reason", "message", "is_hinted"),
    [
        ("CreateContainerConfigError", CACHE_IS_LATE, False),
        ("ImagePullBackOff", "denied", True),
    ],
)
def test_what_is_tried_again_is_given_up_before_the_limit(
    waiter: Waiter, reason: str, message: str, is_hinted: bool
) -> None:
    error = waiter.refusal([state(reason, message)])
    assert message in error.message
    assert ("image_pull_secrets" in (error.hint or "")) is is_hinted
    assert TRIES_LIMIT_S < waiter.time.now_s < LIMIT_S / 2


@pytest.mark.parametrize(
    "back_off", ['Back-off pulling image "x"', 'Back-off pulling image "x": ErrImagePull: denied']
)
def test_a_pull_that_fails_is_said_once_until_it_fails_of_something_else(
    waiter: Waiter, back_off: str
) -> None:
    failed, waits = state("ErrImagePull", "denied"), state("ImagePullBackOff", back_off)
    other = state("ErrImagePull", "no such host")
    waiter.wait([failed], [waits], [failed], [waits], [other], [RUNNING])
    assert waiter.shown == [
        "1 pod pulling its image (ErrImagePull: denied)",
        "1 pod pulling its image (ErrImagePull: no such host)",
    ]


def test_pods_that_are_not_placed_end_with_the_schedulers_words(waiter: Waiter) -> None:
    unplaced = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    status = {"phase": "Pending", "conditions": [unplaced]}
    error = waiter.refusal([pod_state(pod("a") | {"status": status})])
    words = "1 pod waiting for a node (0/3 nodes are available)"
    assert error.message == f"job r: after {LIMIT_S:g} s: {words}"
    assert error.hint == waiter.limit_hint
    assert waiter.shown == [words]
    assert LIMIT_S < waiter.time.now_s < LIMIT_S + 5


def test_a_pod_that_is_not_made_ends_with_the_words_of_who_makes_it(waiter: Waiter) -> None:
    """Beside one that runs."""
    waiter.num_pods = 2
    waiter.fake.script("GET", EVENTS, listed(event("FailedCreate", "exceeded quota: small")))
    error = waiter.refusal([RUNNING])
    words = "1 running; 1 pod can't be made: exceeded quota: small"
    assert error.message == f"job r: after {LIMIT_S:g} s: {words}"
    assert waiter.shown == ["1 running", words]


def test_an_operator_that_makes_no_pods_is_asked_for(waiter: Waiter) -> None:
    error = waiter.refusal([])
    assert f"no pods were made in {NO_PODS_LIMIT_S:g} s" in error.message
    assert "does the operator" in (error.hint or "")


@pytest.mark.parametrize("looks", [[], [state("ImagePullBackOff", "denied")]])
def test_a_limit_of_the_users_that_is_shorter_goes_before_ours(
    waiter: Waiter, looks: list[PodState]
) -> None:
    waiter.limit_s = 20.0
    error = waiter.refusal(looks)
    assert error.hint is not None
    assert waiter.limit_hint not in error.hint
    assert 20.0 < waiter.time.now_s < 30.0


def test_a_pull_that_has_failed_just_before_the_limit_is_hinted_at(waiter: Waiter) -> None:
    """Not tried for long: what helps the image is said all the same."""
    waiter.num_pods, waiter.limit_s = 2, 20.0
    failed = state("ErrImagePull", "denied")
    error = waiter.refusal(*[[starting(), starting()]] * 10, [starting(), failed])
    assert error.message.startswith("job r: after 20 s: 1 pod starting")
    assert "denied" in error.message
    assert "image_pull_secrets" in (error.hint or "")
    assert waiter.time.now_s < 30.0


def test_a_queue_is_waited_for_longer_than_any_limit(waiter: Waiter) -> None:
    waiter.wait(
        *[[]] * int(1.2 * LIMIT_S),
        [RUNNING],
        queued=lambda: Held(words="queued in team"),
    )
    assert waiter.shown == ["waiting for its pods to be made", "queued in team"]


def test_pods_that_are_taken_away_by_a_queue_are_waited_for_again(waiter: Waiter) -> None:
    """A deleted pod is neither waited for nor a reason to give up: its job says what comes."""
    evicted = pod_state(pod("a") | {"metadata": {"name": "a", "deletionTimestamp": "now"}})
    held = Held(words="evicted by Kueue", is_managed=True)
    answers = itertools.chain([held] * 5, itertools.repeat(None))
    waiter.wait([evicted], *[[evicted]] * 8, [evicted, RUNNING], queued=lambda: next(answers))
    assert "evicted by Kueue" in waiter.shown


def test_a_deleted_pod_of_a_job_that_has_failed_ends_it(waiter: Waiter) -> None:
    def failed() -> None:
        raise PlatformError("job r: BackoffLimitExceeded")

    evicted = pod_state(pod("a") | {"metadata": {"name": "a", "deletionTimestamp": "now"}})
    assert "BackoffLimit" in str(waiter.refusal([evicted], queued=failed))


def test_a_job_that_nobody_will_admit_ends_by_the_limit(waiter: Waiter) -> None:
    held = Held(words="queued in team, but nobody will admit it", is_managed=False)
    error = waiter.refusal([], queued=lambda: held)
    assert error.message == f"job r: after {LIMIT_S:g} s: {held.words}"
    assert "integrations.frameworks" in (error.hint or "")
