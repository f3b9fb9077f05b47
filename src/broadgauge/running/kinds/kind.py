"""What must be known of a workload to start a run with it?"""

from collections.abc import Iterator
from pathlib import Path

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

    def lines_below(
        self, case: Case, working_folder: Path, log_stem: str, rank_line: str
    ) -> Iterator[str]:
        """What else is started on a node, as a shell would take it, below the line of its first
        process?"""
        del case, working_folder, log_stem, rank_line
        yield from ()
