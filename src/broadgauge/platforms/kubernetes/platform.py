"""Where do cases run in pods of a cluster? A leader in the first pod holds the launches."""

from broadgauge.manifests.run_job import MakeRunJob
from broadgauge.platforms.kubernetes.allocation import PodsAllocation
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.secrets.values import SecretTexts


class KubernetesPlatform(LedPlatform):
    """The pods of one job, of which nothing is made before the first launch."""

    def __init__(
        self,
        folders: LaunchFolders,
        experiment: Experiment,
        make_job: MakeRunJob,
        *,
        secrets: SecretTexts,
    ) -> None:
        """`make_job`: the job of all cases. `secrets`: variables that ranks get and that stand in
        no order."""
        allocation = PodsAllocation(folders, experiment, make_job, secrets)
        super().__init__(folders, allocation, "first" if experiment.preflight else "no")
