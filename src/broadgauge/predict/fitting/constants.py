"""How do the predictor's constants get their values?

`python -m broadgauge.predict.fitting.constants references/measured-training.csv` writes
catalog/fitted.yaml: one fit on all sources, and one without each of them, for scoring that source.
Every constant is a physical quantity with a prior and bounds (constants.yaml); none belongs to a
source or a model, and the step time itself is never regressed.

Residuals are those of the timeline. Slopes come of a closed form of a step (`_closed_form_s`), in
which what the timeline adds stays as it is; a few rounds of both converge, at a hundredth of the
cost.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from broadgauge.catalog.compiling import write_copies
from broadgauge.catalog.constants import Constant, known_constants
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.arrays import Flags, Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.knowledge import Knowledge, node_rate_ratios, prior_knowledge
from broadgauge.predict.fitting.residuals import HeldOut, residual_table
from broadgauge.predict.fitting.robust import Prior, Vector, by_differences, estimate
from broadgauge.predict.fitting.sample import Sample, sample_of
from broadgauge.predict.tables.table import read_table
from broadgauge.predict.timeline.evaluation import Evaluation, evaluate

SCALE = 0.15
"""Spread of the logarithm of measured over predicted in rows that are no outliers."""
FREEDOM = 3.0
ROUNDS = 2
EXPOSED_SHARE = 0.25
"""Rows that wait longer for links say nothing of kernels; with RDMA they fit its rate."""
FIGURES = 5
"""Significant figures kept, so that a rerun on another machine gives the same file."""


def fit_constants(sample: Sample, *, without: str | None = None) -> dict[str, float]:
    """The constants that all rows agree on best, those of one source left out."""
    chosen = sample.is_used.copy()
    if without is not None:
        chosen &= ~sample.of(without)
    constants = [constant for constant in known_constants() if constant.is_fitted]
    knowledge = prior_knowledge()
    mean = np.log([constant.value for constant in constants])
    for _ in range(ROUNDS):
        mean = _round(sample, chosen, constants, knowledge, mean)
        knowledge = knowledge.with_values(_named(constants, mean))
    return {name: float(f"{value:.{FIGURES}g}") for name, value in _named(constants, mean).items()}


def _round(
    sample: Sample,
    chosen: Flags,
    constants: Sequence[Constant],
    knowledge: Knowledge,
    start: Vector,
) -> Vector:
    """One evaluation of the timeline, and the constants that its closed form then gives."""
    whole = evaluation_of(sample, knowledge)
    exposed_s = whole.exposed_network_s + whole.exposed_intra_node_s
    rows = chosen & ((exposed_s < EXPOSED_SHARE * whole.step_s) | sample.is_rdma)
    closed = _closed_form_s(sample, knowledge, knowledge, whole)
    scale = whole.step_s / closed / sample.measured_s

    def residuals(x: Vector) -> Vector:
        moved = knowledge.with_values(_named(constants, x))
        errors: Vector = np.log(_closed_form_s(sample, moved, knowledge, whole) * scale)[rows]
        return errors

    prior = Prior(
        mean=np.log([constant.value for constant in constants]),
        sd=np.array([constant.spread_log_sd for constant in constants]),
        low=np.log([constant.low for constant in constants]),
        high=np.log([constant.high for constant in constants]),
    )
    found = estimate(
        by_differences(residuals),
        prior,
        scale=SCALE,
        freedom=FREEDOM,
        weights=_weights(sample, rows),
        start=start,
    )
    return found.mean


def _named(constants: Sequence[Constant], logs: Vector) -> dict[str, float]:
    return {each.name: float(np.exp(value)) for each, value in zip(constants, logs, strict=True)}


def _weights(sample: Sample, rows: Flags) -> Vector:
    """A source of n rows counts as √n of them, so that two large ones don't decide alone."""
    names = np.array(sample.sources)[rows]
    counts = {name: int((names == name).sum()) for name in sample.names}
    return np.array([1 / np.sqrt(counts[name]) for name in names])


def evaluation_of(sample: Sample, knowledge: Knowledge) -> Evaluation:
    """All rows, by the timeline."""
    columns = _with_network(sample.columns, knowledge)
    return evaluate(columns, compute_costs(columns, knowledge))


def _with_network(columns: Columns, knowledge: Knowledge) -> Columns:
    return replace(columns, node_rate_ratio=node_rate_ratios(columns.cases, knowledge))


def _closed_form_s(
    sample: Sample, knowledge: Knowledge, base: Knowledge, whole: Evaluation
) -> Times:
    """A step without a timeline: pieces one after the other, waiting for links as `whole` has it.

    With RDMA that waiting follows the rate, which is the fit's to move.
    """
    columns = sample.columns
    costs = compute_costs(columns, knowledge)
    layers = columns.stage_layers
    forward_s = np.maximum(costs.layer_forward_s, costs.layer_forward_launch_s)
    backward_s = np.maximum(
        costs.layer_backward_s + costs.layer_recompute_s,
        costs.layer_backward_launch_s + costs.layer_recompute_launch_s,
    )
    head_s = np.maximum(costs.head_forward_s, costs.head_forward_launch_s)
    head_s = head_s + np.maximum(costs.head_backward_s, costs.head_backward_launch_s)
    stage_s = layers * (forward_s + backward_s)
    filling_s = (columns.pipeline_parallel - 1) * stage_s
    rate_ratio = _rdma(base, columns) / _rdma(knowledge, columns)
    network_s = whole.exposed_network_s * np.where(sample.is_rdma, rate_ratio, 1.0)
    once_s = np.maximum(costs.optimizer_s, costs.optimizer_launch_s) + costs.step_fixed_s
    work_s = columns.micro_batches * (stage_s + head_s) + filling_s
    return np.asarray(work_s + once_s + network_s + whole.exposed_intra_node_s)


def _rdma(knowledge: Knowledge, columns: Columns) -> Times:
    return knowledge.by_generation("rdma_ratio", columns)


def fit_all(sample: Sample) -> list[dict[str, object]]:
    """Entries of fitted.yaml: on all sources, and without each."""
    known = sample.names
    everything = fit_constants(sample)
    variants: dict[str, Mapping[str, float]] = {}
    left_out: list[HeldOut] = []
    for source in known:
        constants = fit_constants(sample, without=source)
        knowledge = prior_knowledge().with_values(constants)
        left_out.append(HeldOut.of(sample, source, knowledge))
        variants[source] = constants
    entries: list[dict[str, object]] = [
        _entry("all", None, known, everything, residual_table(left_out))
    ]
    for index, (source, values) in enumerate(variants.items()):
        others = [each for each in left_out if each.source != source]
        rest = [name for name in known if name != source]
        entries.append(_entry(f"without-{index + 1}", source, rest, values, residual_table(others)))
    return entries


def _entry(
    name: str,
    without: str | None,
    sources: Sequence[str],
    constants: Mapping[str, float],
    residuals: Mapping[str, tuple[float, float]],
) -> dict[str, object]:
    return {
        "name": name,
        "without": without,
        "fitted_on": list(sources),
        "constants": dict(constants),
        "residuals": {
            regime: [float(f"{side:.3g}") for side in sides] for regime, sides in residuals.items()
        },
    }


def yaml_text(entries: Sequence[Mapping[str, object]]) -> str:
    """As it stands in the catalog: flow style for the many small numbers."""
    lines = [
        "# Generated by",
        "# `python -m broadgauge.predict.fitting.constants references/measured-training.csv`.",
        "# Priors, bounds and sources of the constants: constants.yaml. Scoring a source uses the",
        "# entry without it. Residuals: logarithms of measured over predicted of sources left out.",
        "fitted:",
    ]
    for entry in entries:
        lines.append(f"  - name: {entry['name']}")
        lines.append(f"    without: {_quoted(entry['without'])}")
        sources = entry["fitted_on"]
        assert isinstance(sources, list)
        lines.append(f"    fitted_on: [{', '.join(_quoted(each) for each in sources)}]")
        for part in ("constants", "residuals"):
            values = entry[part]
            assert isinstance(values, dict)
            lines.append(f"    {part}:" + ("" if values else " {}"))
            lines.extend(f"      {key}: {value}" for key, value in values.items())
    return "\n".join(lines) + "\n"


def _quoted(text: object) -> str:
    return "null" if text is None else f'"{text}"'


def main(arguments: Sequence[str]) -> None:
    """Writes catalog/fitted.yaml beside this package."""
    table = read_table(Path(arguments[0]).read_bytes(), arguments[0])
    entries = fit_all(sample_of(table.rows))
    target = Path(__file__).parents[2] / "catalog" / "fitted.yaml"
    target.write_text(yaml_text(entries), encoding="utf-8")
    write_copies(target.parent / "compiled")


if __name__ == "__main__":
    main(sys.argv[1:])
