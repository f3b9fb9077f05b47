"""How often is each size measured?"""

from broadgauge.specs.workload import MOST_CAPTURED_ITERATIONS, CollectivesWorkload


def affordable_iterations(workload: CollectivesWorkload, mean_s: float) -> int:
    """As often as the budget allows by the warm-up's mean time, within the bounds."""
    affordable = int(workload.budget_s / max(mean_s, 1e-9))
    most = workload.max_iterations
    if workload.cuda_graphs:
        most = min(most, MOST_CAPTURED_ITERATIONS)
    return min(max(affordable, workload.min_iterations), most)
