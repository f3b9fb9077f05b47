"""What is asked of a cluster for a run's cases? Their networks, their files, what pods need."""

from pathlib import Path

from broadgauge.agent import bundle
from broadgauge.catalog.fabrics import pod_networks
from broadgauge.manifests.memory_need import NeedOf, nothing_known
from broadgauge.manifests.request import JobRequest
from broadgauge.messages.leader import INTERFACES_WORD, MASTER_WORD
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.nothing_secret import refuse_secrets
from broadgauge.platforms.kubernetes.user_files import read_address_map, user_files
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.orders import Seat, Seats
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.network import Network


class JobMaker:
    """From an experiment and its cases to the request for one job."""

    def __init__(
        self,
        experiment: Experiment,
        cases: tuple[Case, ...],
        folders: LaunchFolders,
        secrets: tuple[str, ...],
        need_of: NeedOf = nothing_known,
        *,
        owner: str | None = None,
    ) -> None:
        """`need_of`: how much memory the cases of a job need. `owner`: who runs it; None: nobody
        does, it is rendered."""
        self.experiment = experiment
        self._cases = cases
        self._folders = folders
        self._secrets = secrets
        self._need = need_of(experiment, cases)
        self._owner = owner

    def request(self, place: JobPlace, orders: bytes) -> JobRequest:
        """Raises InputError where a file is missing or too large, or a secret would be shown."""
        settings = self.experiment.kubernetes.model_copy(
            update={"namespace": place.namespace or None}
        )
        experiment = self.experiment.model_copy(update={"kubernetes": settings})
        folder = Path(self._folders.working)
        refuse_secrets(self._cases, settings)
        return JobRequest(
            name=place.name,
            run=place.run,
            owner=self._owner,
            experiment=experiment,
            cases=self._cases,
            networks=self._networks(),
            kind=place.kind,
            num_pods=max(case.nodes for case in self._cases),
            gpus_per_pod=max(
                case.ranks_per_node if case.device == "cuda" else 0 for case in self._cases
            ),
            memory_bytes=settings.memory_bytes,
            memory_need=self._need,
            program=bundle.build(),
            orders=orders,
            files=user_files(self._cases, settings, folder),
            address_map=read_address_map(self._networks(), folder),
            secret_names=self._secrets,
        )

    def pod_network(self, case: Case, place: JobPlace) -> PodNetwork | None:
        """What agents are told to look for; None: the case has no network between nodes."""
        return None if case.link is None else self.request(place, b"").pod_network(case)

    def seats(self, case: Case, place: JobPlace) -> Seats:
        """Known in the pods only: the leader and the agents fill in the words."""
        interfaces = ("lo",) if case.link is None else (INTERFACES_WORD,)
        seat = Seat(num_cores=self.cores_of(case), interfaces=interfaces)
        return Seats(
            seats=(seat,) * case.nodes,
            master_address=MASTER_WORD,
            network=self.pod_network(case, place),
        )

    def cores_of(self, case: Case) -> int:
        """As many as its pods ask for, else one a rank."""
        cpus = self.experiment.kubernetes.cpus
        return case.ranks_per_node if cpus is None else max(1, int(cpus))

    def _networks(self) -> tuple[Network, ...]:
        used = {case.link.name for case in self._cases if case.link is not None}
        return tuple(each for each in pod_networks(self.experiment.networks) if each.name in used)
