"""What does the engine know of naps?"""

from broadgauge.specs.workloads.toy import ToyWorkload

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.specs.case import Case


class ToyInEngine(KindInEngine):
    def __init__(self, toy: ToyWorkload) -> None:
        self.toy = toy

    def trial_s(self, case: Case) -> float:
        return 0.25 * self.toy.naps

    @property
    def uses_folder(self) -> bool:
        return False
