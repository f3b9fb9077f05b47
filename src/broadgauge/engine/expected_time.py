"""How long should a launch and its trials take? Rough: for the first screen and the remaining time.

Wrong by a factor of two is normal; while a run goes on, the remaining time is scaled by how long
the trials so far took (engine/pace.py). How long a trial of each kind of workload takes:
engine/kinds/.
"""

from broadgauge.engine.kinds.registry import in_engine
from broadgauge.specs.case import Case
from broadgauge.specs.plan import Plan

_START_S = {"cpu": 3.0, "cuda": 10.0}
"""Processes, imports, first process group, end. 2.8 s for two Gloo ranks (measured)."""
_START_S_PER_RANK = {"cpu": 0.7, "cuda": 0.3}
"""Importing torch is CPU work that ranks queue for."""


def start_s(case: Case) -> float:
    """How long until the ranks of such a case are up, and down again?"""
    return _START_S[case.device] + _START_S_PER_RANK[case.device] * case.world_size


def trial_s(case: Case) -> float:
    """How long does one trial of this case take, its process group included?"""
    return in_engine(case.workload).trial_s(case)


def guessed_s(plan: Plan) -> float:
    """How much of the time that is expected of a run is a guess at a user's commands?"""
    guesses = {
        case.key: trial_s(case)
        for case in plan.cases
        if not in_engine(case.workload).is_duration_known
    }
    trials = (trial for launch in plan.launches for trial in launch.trials)
    return sum(guesses.get(trial.case_key, 0.0) for trial in trials)
