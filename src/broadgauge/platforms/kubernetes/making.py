"""What is made for a run, in which order, and what is there already?

The program's ConfigMap is the first and owns the rest until the job is there (owner_references.py).
What outlives runs, a definition that the experiment names, a claim and the Job that fills it, is
made once and left alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broadgauge.manifests.run_job import RunJob, lasting_objects, own_objects
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_states import trouble_of
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.owned import Say, create_all
from broadgauge.platforms.kubernetes.owner_references import give_to_job, owned_by, parted
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import ATTACHMENTS, JOBS, resource_of
from broadgauge.specs.errors import PlatformError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObjects:
    """All that is made for one job of a run."""

    lasting: tuple[Manifest, ...]
    own: tuple[Manifest, ...]
    """The job the last."""
    secret: Manifest
    run: RunJob

    @classmethod
    def of(cls, run: RunJob, orders: Mapping[str, bytes], secret: Manifest) -> "RunObjects":
        """Raises InputError where it does not fit, or would show a secret."""
        return cls(
            lasting=lasting_objects(run), own=own_objects(run, orders), secret=secret, run=run
        )

    def claim(self, api: Api, namespace: str, say: Say) -> JsonMap:
        """Make what outlives runs, then the owner of all else: whoever made that has the job's
        name. Raises PlatformError; AlreadyThereError where an earlier life of the tool has it."""
        _keep_lasting(api, namespace, self.lasting, say)
        first, _ = parted(self.run, self.own)
        (owner,) = create_all(api, namespace, [first], say)
        return owner

    def create(self, api: Api, namespace: str, owner: JsonMap, say: Say) -> tuple[JsonMap, ...]:
        """The others, as they are then. Raises PlatformError; what was made stays, labelled."""
        _, others = parted(self.run, self.own)
        create_all(api, namespace, owned_by(owner, self.run, [self.secret]), say)
        made = create_all(api, namespace, owned_by(owner, self.run, others), say)
        give_to_job(api, namespace, self.run, owner=owner, made=made, say=say)
        return made


def _keep_lasting(api: Api, namespace: str, objects: Sequence[JsonMap], say: Say) -> None:
    """Make what is missing. Raises PlatformError, also where an earlier filling has failed."""
    for each in objects:
        there = _find(api, namespace, each)
        if there is None:
            create_all(api, namespace, [each], say)
        elif resource_of(each) is ATTACHMENTS:
            _refuse_another(each, there)
        elif resource_of(each) is JOBS and (trouble := trouble_of(there)) is not None:
            name = each["metadata"]["name"]
            raise PlatformError(
                f"Job {name}, which fills a volume for the run, has failed: {trouble}",
                hint=f"`kubectl logs job/{name}` says why; once deleted, it is made again",
            )


def _refuse_another(body: JsonMap, there: JsonMap) -> None:
    """A definition of the experiment's name may be from an earlier run or rendering. Raises
    PlatformError where it is another one."""
    if there.get("spec") != body["spec"]:
        name = body["metadata"]["name"]
        raise PlatformError(
            f"NetworkAttachmentDefinition {name} is there, and is another than this experiment "
            "writes",
            hint="another name in `networks[].kubernetes.definitions`, or `attachment: existing` "
            "to take the one that is there",
        )


def _find(api: Api, namespace: str, body: JsonMap) -> JsonMap | None:
    name = body["metadata"]["name"]
    try:
        return api.find(resource_of(body), namespace, name)
    except ApiError as error:
        raise refusal(error, f"looking for {body['kind']} {name}") from error
