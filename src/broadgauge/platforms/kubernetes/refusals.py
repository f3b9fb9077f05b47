"""What does a refusal of an API server mean to whoever runs an experiment?"""

from broadgauge.platforms.kubernetes.api_errors import MALFORMED, ApiError
from broadgauge.specs.errors import PlatformError

_LOGIN = "log in again (`oc login`, your cloud's login program); `run --resume` goes on with a run"
_NO_SERVER = "`server` of your kubeconfig: is it the API server's own address, or a login page's?"
_QUOTA = "`kubectl describe quota`; smaller `cpus` and `memory_bytes`, or fewer nodes"
_CLEANUP = "`broadgauge cleanup` lists and removes what an earlier run has left"
RBAC_HINT = "`broadgauge render EXPERIMENT --rbac --job KIND` prints the least Role"


class AlreadyThereError(PlatformError):
    """Somebody has made an object of this name."""


def refusal(
    error: ApiError, doing: str, form: type[PlatformError] = PlatformError
) -> PlatformError:
    """In words, with what helps. `doing`: what was being done: `creating the job`. `form`: what it
    means for what runs: UncollectedError leaves it there."""
    words, hint = _words(error)
    if form is PlatformError and error.reason == "AlreadyExists":
        form = AlreadyThereError
    return form(f"{doing}: {words}: {error.message}", hint=hint)


def _words(error: ApiError) -> tuple[str, str | None]:
    what = f"{error.verb} {error.what}"
    match error.status:
        case None if error.reason == MALFORMED:
            found = f"what answers to {what} is no API server", _NO_SERVER
        case None:
            found = "the API server does not answer", "`kubectl get pods`: does it, for you?"
        case 401:
            found = "your credentials are not accepted", _LOGIN
        case 403 if "quota" in error.message.lower():
            found = f"a quota is used up ({what})", _QUOTA
        case 403:
            found = f"you may not {what}", RBAC_HINT
        case 404:
            found = f"there is no {error.what}", "is the namespace right, the operator installed?"
        case 409 if error.reason == "AlreadyExists":
            found = "it is there already", _CLEANUP
        case 400 | 422:
            return f"the cluster refuses to {what}", None
        case status:
            return f"the API server answers {status} to {what}", None
    return found
