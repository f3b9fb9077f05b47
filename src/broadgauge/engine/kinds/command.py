"""What does the engine know of a user's own command? Next to nothing."""

from typing import ClassVar

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.specs.case import Case

COMMAND_S = 60.0
"""A guess, which nothing but waiting rests on."""


class CommandInEngine(KindInEngine):
    """A command as it is planned."""

    is_duration_known: ClassVar[bool] = False

    def trial_s(self, case: Case) -> float:
        del case
        return COMMAND_S

    @property
    def uses_folder(self) -> bool:
        return True
