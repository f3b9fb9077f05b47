"""How often is each size measured?"""

from broadgauge.messages.tasks import CollectivesTask
from broadgauge.messages.vocabulary import MOST_CAPTURED_ITERATIONS


def affordable_iterations(task: CollectivesTask, mean_s: float) -> int:
    """As often as the budget allows by the warm-up's mean time, within the bounds."""
    affordable = int(task.budget_s / max(mean_s, 1e-9))
    most = task.max_iterations
    if task.cuda_graphs:
        most = min(most, MOST_CAPTURED_ITERATIONS)
    return min(max(affordable, task.min_iterations), most)
