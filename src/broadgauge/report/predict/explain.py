"""What does `predict --explain` print? The estimate by hand, the model's answer, and why."""

from collections.abc import Sequence

from rich.console import Console

from broadgauge.predict.answering.answers import Answer
from broadgauge.predict.answering.simple_estimates import Explanation, explain
from broadgauge.predict.prediction import Prediction
from broadgauge.report.predict.words import label_words, show_interval, widened_words
from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.specs.units import show_ratio, show_time

MOST_EXPLAINED = 8
NOTHING_SENT = "nothing leaves the node, so there are no bytes to count by hand"
NO_RATE = "no rate of the network is stated, so there is none to divide its bytes by"
LEAST_RATIO = 0.001
"""Of a step: parts below it are not listed."""


def print_explanations(answers: Sequence[Answer], console: Console) -> None:
    """Each case, the first few of many."""
    for answer in answers[:MOST_EXPLAINED]:
        print_explanation(answer, explain(answer.prediction), console)
    if len(answers) > MOST_EXPLAINED:
        more = len(answers) - MOST_EXPLAINED
        sentence(f"{more} more cases: --json explains all", console, "dim")


def print_explanation(answer: Answer, explanation: Explanation, console: Console) -> None:
    """By hand, by the model, and what makes the difference."""
    heading(f"Explained: {label_words(answer)}", console)
    step = answer.prediction.step_time_s
    rows = [
        (each.method, show_time(each.total_s), _off(each.total_s, step.value))
        for each in explanation.estimates
    ]
    rows.append(("this model", show_time(step.value), show_interval(step)))
    print_table(("estimate", "step", "against the model"), rows, console)
    for each in explanation.estimates:
        sentence(f"{each.method}: {each.arithmetic}", console)
    sentence(f"this model: {parts_words(answer.prediction)}", console)
    if answer.prediction.widened is not None:
        sentence(f"its interval: {widened_words(answer.prediction)}", console)
    if not explanation.estimates:
        is_inside = answer.prediction.network_bytes <= 0
        sentence(NOTHING_SENT if is_inside else NO_RATE, console)
    from_which = f" from {explanation.estimates[-1].method}" if explanation.estimates[1:] else ""
    for reason in explanation.reasons:
        sentence(f"why it differs{from_which}: {reason}", console)


def parts_words(prediction: Prediction) -> str:
    """`540 ms compute + 300 ms waiting for the network = 840 ms`."""
    parts = prediction.parts
    named = (
        (parts.compute_s, "compute"),
        (parts.launch_s, "waiting for kernel launches"),
        (parts.exposed_intra_node_s, "waiting for links in the node"),
        (parts.exposed_network_s, "waiting for the network"),
        (parts.bubble_s, "pipeline bubble"),
        (parts.optimizer_s, "optimizer"),
        (parts.storage_s, "storage"),
    )
    step_s = prediction.step_time_s.value
    shown = [f"{show_time(each)} {name}" for each, name in named if each > LEAST_RATIO * step_s]
    return f"{' + '.join(shown)} = {show_time(step_s)}"


def _off(estimate_s: float, model_s: float) -> str:
    return f"{'+' if estimate_s >= model_s else ''}{show_ratio(estimate_s / model_s - 1, 2)}"
