"""Where do cases run in pods of a cluster? A leader in the first pod holds the launches."""

from collections.abc import Sequence

from broadgauge.manifests.memory_need import NeedOf, nothing_known
from broadgauge.platforms.kubernetes.allocation import PodsAllocation
from broadgauge.platforms.kubernetes.job_place import JobNumbers
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.one_per_case import OnePerCase
from broadgauge.platforms.led.orders import secret_names
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import Platform
from broadgauge.specs.secrets import Secrets


def open_kubernetes(
    folders: LaunchFolders,
    experiment: Experiment,
    *,
    secrets: Secrets,
    cases: Sequence[Case],
    need_of: NeedOf = nothing_known,
) -> Platform:
    """`cases`: of the whole plan; `need_of`: how much memory some need. Raises PlatformError."""
    found = ((name, secrets.find(name)) for name in sorted(secret_names(cases)))
    values = {name: secret.reveal() for name, secret in found if secret is not None}
    own = [case for case in cases if case.platform in (None, "kubernetes")]
    if experiment.allocation == "one":
        return LedPlatform(
            folders, PodsAllocation(folders, experiment, own, values, need_of=need_of)
        )
    numbers = JobNumbers()
    return OnePerCase(
        own,
        lambda case: LedPlatform(
            folders,
            PodsAllocation(folders, experiment, [case], values, numbers=numbers, need_of=need_of),
        ),
    )
