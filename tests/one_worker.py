"""Which worker of pytest-xdist runs a test? One runs all that need the control plane."""

from xdist.scheduler import LoadFileScheduling

FOLDER = "tests/kubernetes/"


class OneWorkerForKubernetes(LoadFileScheduling):
    """`--dist loadfile` with one folder that counts as a file."""

    def _split_scope(self, nodeid: str) -> str:
        return FOLDER if nodeid.startswith(FOLDER) else super()._split_scope(nodeid)
