"""How long may a launch take, phase by phase?"""

from broadgauge.specs.base import Spec
from broadgauge.specs.units import TimeS


class TimeLimits(Spec):
    """How long may each phase of a launch last before it is ended and recorded as a time-out?

    Phases that alternate in a trial, size by size, are counted each with all its parts together.
    """

    rendezvous_s: TimeS = 120
    """Start of the processes, imports, and the first process group."""
    warm_up_s: TimeS = 120
    """The first iterations or steps of one trial, which are not measured. Of a traced command: all
    of the traced launch."""
    measure_s: TimeS = 600
    """What is measured of one trial. One collective may last four fifths of it."""
    teardown_s: TimeS = 30
    """The end of the processes."""
    stall_s: TimeS | None = 60
    """A trial is ended as hung when no step or metric came for so long, and for 20 times as long as
    between two of them before. null: only the limits above count."""
