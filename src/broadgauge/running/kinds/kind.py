"""What must be known of a workload to start a run with it?"""

from collections.abc import Iterator
from pathlib import Path

from broadgauge.agent.bundle import POD_PARTS
from broadgauge.manifests.memory_need import MemoryPart
from broadgauge.specs.case import Case


class KindInRunning:
    """A workload as it is started. A kind that reads no files says nothing here."""

    @property
    def prepare(self) -> tuple[str, ...] | None:
        """What runs once on the host before any node exists; None: nothing."""
        return None

    def check_files(self, working_folder: Path, *, is_prepared: bool) -> None:
        """Is what it reads there? Raises InputError. What `prepare` may fetch is looked for when
        `is_prepared`."""

    @property
    def holds_what_is_known(self) -> bool:
        """Does `held_on_host` say all that its ranks hold beside their libraries?"""
        return True

    def held_on_host(self, case: Case) -> Iterator[MemoryPart]:
        """What a pod's ranks hold in their node's memory, beside Python, torch and NCCL?"""
        del case
        yield from ()

    @property
    def pod_parts(self) -> tuple[str, ...]:
        """Of the program, what a pod needs that nobody leads."""
        return POD_PARTS

    @property
    def torchrun_words(self) -> tuple[str, ...] | None:
        """The user's own script with its arguments; None: the ranks are ours."""
        return None

    @property
    def named_files(self) -> tuple[str, ...]:
        """Words of it that may be files beside the experiment."""
        return ()

    @property
    def needed_files(self) -> tuple[str, ...]:
        """Those of them that it can't do without."""
        return ()

    @property
    def own_words(self) -> dict[str, tuple[str, ...]]:
        """What of it are words of the user's that a shell would take, by key."""
        return {}

    @property
    def folder(self) -> str | None:
        """Where it runs, where that is said."""
        return None

    @property
    def left_on_this_machine(self) -> tuple[str, ...]:
        """Keys of it that mean something of this machine, which no pod has."""
        return ()

    def lines_below(
        self,
        case: Case,
        working_folder: Path,
        log_stem: str,
        rank_line: str,
        *,
        is_elsewhere: bool,
    ) -> Iterator[str]:
        """What else is started on a node, as a shell would take it, below the line of its first
        process? `is_elsewhere`: that node is another machine, of which only words are known."""
        del case, working_folder, log_stem, rank_line, is_elsewhere
        yield from ()
