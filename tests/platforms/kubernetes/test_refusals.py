"""Does each refusal say what was asked for, why, and what helps?"""

import pytest

from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.refusals import refusal

WHAT = "pods in namespace training"


@pytest.mark.parametrize(
    ("status", "message", "words", "hint"),
    [
        (None, "connection refused", "the API server does not answer", "kubectl get pods"),
        (401, "Unauthorized", "your credentials are not accepted", "run --resume"),
        (403, "forbidden", f"you may not create {WHAT}", "--rbac"),
        (403, "exceeded quota: small", f"a quota is used up (create {WHAT})", "describe quota"),
        (404, "not found", f"there is no {WHAT}", "namespace"),
        (400, "strict decoding error", f"the cluster refuses to create {WHAT}", None),
        (422, "spec.x: Invalid value", f"the cluster refuses to create {WHAT}", None),
        (409, "conflict", f"the API server answers 409 to create {WHAT}", None),
        (429, "too many requests", f"the API server answers 429 to create {WHAT}", None),
        (503, "unavailable", f"the API server answers 503 to create {WHAT}", None),
    ],
)
def test_words_and_hint(status: int | None, message: str, words: str, hint: str | None) -> None:
    error = ApiError(message, status=status, verb="create", what=WHAT)
    told = refusal(error, "creating the job")
    assert told.message == f"creating the job: {words}: {message}"
    if hint is None:
        assert told.hint is None
    else:
        assert told.hint is not None
        assert hint in told.hint
