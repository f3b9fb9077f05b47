"""What would a training take on another cluster? Asked from Python, in the words of the flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from rich.console import Console

from broadgauge.api.asking import (
    OneOrMore,
    PathLike,
    catalog_of,
    count,
    number,
    one_of,
    path_of,
    path_or_none,
    shown,
    text,
    token_count,
    truth,
    values_of,
)
from broadgauge.api.display import Displayed, listed, plain_text
from broadgauge.api.table import Table, table_of_rows
from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.prediction import Prediction
from broadgauge.report.page.markup import Html, join, table, tag
from broadgauge.report.predict.data import flat, to_json
from broadgauge.report.predict.page import HEAD, table_row, training_table
from broadgauge.report.predict.terminal import print_answers
from broadgauge.report.predict.words import (
    NEAREST_WORDS,
    common_words,
    fitting_first,
    label_words,
    limits,
    with_nearest,
)
from broadgauge.running.predicting import PAYS_RATIO, Question, reply_to
from broadgauge.specs.cost import MOST_USD_PER_HOUR
from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    from broadgauge.running.predicting import Reply

Strategy = Literal["ddp", "fsdp", "hsdp", "megatron"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8"]
Recompute = Literal["none", "selective", "full"]
GRADIENT_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Predictions(Displayed, Sequence[Prediction]):
    """What `predict` answers: a `Prediction` a case, in the order asked, that a notebook shows as a
    table.

    A `Prediction` has `step_time_s` (`value` with the ends `low` and `high` of its 80 % interval),
    `tokens_per_s` of all GPUs, `mfu_ratio`, `parts` (where the seconds of a step go), `memory` (of
    the fullest GPU, `memory.is_fitting`), `bound` and `case`. Cases that do not fit are answered,
    too.
    """

    _reply: Reply

    def __len__(self) -> int:
        return len(self._reply.answers.answers)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Prediction, ...]: ...
    def __getitem__(self, index: int | slice) -> Prediction | tuple[Prediction, ...]:
        found = tuple(each.prediction for each in self._reply.answers.answers)
        return found[index]

    def __repr__(self) -> str:
        return f"<Predictions: {len(self)} of {self._reply.answers.num_cases} cases>"

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells each case from the others: `roce-400g, 8 nodes`."""
        return tuple(map(label_words, self._reply.answers.answers))

    @property
    def best(self) -> Prediction | None:
        """The most tokens a second among those that fit; None: none fits."""
        fitting = [each for each in self if each.memory.is_fitting]
        return max(fitting, key=lambda each: each.tokens_per_s, default=None)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was not asked for, and was taken."""
        return self._reply.assumed

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and which entries of the catalog were replaced."""
        return self._reply.notes

    @property
    def recommendations(self) -> tuple[str, ...]:
        """What follows, a sentence each; none where there are more than 40 cases."""
        return tuple(each.words for each in self._reply.recommendations)

    @property
    def table(self) -> Table:
        """One row a case: what `predict --csv` writes, and `label`.

        Times in seconds with the 80 % interval (step_time_low_s, step_time_high_s), memory in
        bytes, usd_per_gigatoken in US dollars for 10⁹ tokens (None: no price is known).
        """
        rows = [
            {"label": label, **_true_or_false(flat(answer))}
            for label, answer in zip(self.labels, self._reply.answers.answers, strict=True)
        ]
        return table_of_rows("predictions", rows)

    def to_json(self) -> str:
        """What `predict --json` prints, with the bandwidth curves."""
        reply = self._reply
        return to_json(reply.answers, reply.assumed, reply.notes, reply.recommendations)

    def write_html(self, path: PathLike) -> Path:
        """The page with plots that `predict --html` writes. Raises RunFolderError."""
        from broadgauge.report.predict.page import render
        from broadgauge.results.folder import disk

        reply, target = self._reply, Path(path)
        page = render(reply.answers, reply.assumed, reply.notes, reply.recommendations)
        with disk.telling("write", target):
            disk.write_whole(target, page.encode())
        return target

    def _html(self) -> Html:
        reply = self._reply
        asked = fitting_first(reply.answers.answers)
        shown = [*with_nearest(asked, reply.answers.over)]
        return join(
            tag("p", common_words(reply.answers), class_="title"),
            tag("p", f"Assumed: {'; '.join(reply.assumed)}.", class_="faint")
            if reply.assumed
            else "",
            table(HEAD, [table_row(answer) for answer in shown]),
            tag("p", f"{NEAREST_WORDS}.", class_="faint") if len(shown) > len(asked) else "",
            list(training_table(shown)),
            tag("ul", [tag("li", words) for words in limits(asked)]),
            tag("ul", [tag("li", words) for words in self.recommendations]),
            listed(self.notes),
        )

    def _plain(self) -> str:
        return plain_text(self._print)

    def _print(self, console: Console) -> None:
        print_answers(self._reply.answers, self._reply.assumed, self._reply.notes, console)


def predict(
    experiment: PathLike | None = None,
    *,
    model: OneOrMore[str] | None = None,
    gpu: OneOrMore[str] | None = None,
    node: OneOrMore[str] | None = None,
    nodes: OneOrMore[int] | None = None,
    gpus_per_node: OneOrMore[int] | None = None,
    network: OneOrMore[str] | None = None,
    strategy: OneOrMore[Strategy] | None = None,
    tp: OneOrMore[int] | None = None,
    pp: OneOrMore[int] | None = None,
    virtual_stages: OneOrMore[int] | None = None,
    cp: OneOrMore[int] | None = None,
    ep: OneOrMore[int] | None = None,
    sequence_parallel: OneOrMore[bool] | None = None,
    zero: OneOrMore[int] | None = None,
    seq_len: OneOrMore[int] | None = None,
    micro_batch: OneOrMore[float] | None = None,
    global_batch: OneOrMore[float] | None = None,
    accumulation: OneOrMore[int] | None = None,
    precision: OneOrMore[Precision] | None = None,
    gradients: OneOrMore[Literal["fp32", "bf16", "fp16"]] | None = None,
    recompute: OneOrMore[Recompute] | None = None,
    flash_attention: OneOrMore[bool] | None = None,
    compile: OneOrMore[bool] | None = None,
    lora: OneOrMore[bool] | None = None,
    int4_base: OneOrMore[bool] | None = None,
    cpu_offload: OneOrMore[bool] | None = None,
    keep_gathered: OneOrMore[bool] | None = None,
    data_stall_s: OneOrMore[float] | None = None,
    checkpoint_stall_s: OneOrMore[float] | None = None,
    framework: OneOrMore[str] | None = None,
    system: PathLike | None = None,
    measured: PathLike | None = None,
    catalog: Catalog | OneOrMore[PathLike] | None = None,
    usd_per_gpu_hour: float | None = None,
    tokens: float | str | None = None,
    pays_ratio: float = PAYS_RATIO,
) -> Predictions:
    """Predicts step times, throughput, memory and cost of trainings; needs no GPU and no torch.

    Each word is a flag of `broadgauge predict` (docs/predict.md) and takes one value or several;
    several of several ask for every combination. What is not said is taken, and told in `assumed`.

    experiment: a file or the name of an example, whose trainings are meant; then `gpu`, and
        perhaps gpus_per_node, nodes and network.
    model, gpu or node, network: names of the catalog; a model may be the path of a Hugging Face
        config.json; a network may be given with what it was measured to carry: `"pod=0.48GB/s"`.
    nodes, gpus_per_node: how many. tp, pp, cp, ep: degrees of tensor, pipeline, context and expert
        parallelism. zero: ZeRO's stage.
    seq_len: tokens a sequence. micro_batch: sequences a rank and pass. global_batch: sequences a
        step of all ranks; or accumulation: micro-batches a step.
    keep_gathered: FSDP's weights stay whole until the backward pass.
    data_stall_s, checkpoint_stall_s: what a step waits for data, and for a checkpoint's share.
    system: a file of `calibrate`; measured: a CSV of steps of yours; catalog: from `load_catalog`,
        or files of yours. usd_per_gpu_hour: instead of the catalog's price. tokens: of a whole
        training, `"300B"` or `300e9`, whose time and US dollars `table` then has. pays_ratio: what
        a better network must bring to be recommended, 0.1 for 10 %.

    Raises InputError: an unknown name with what was meant, a value that can't be, more than
    100,000 combinations.

    Example: `predict(model="llama3-8b", gpu="h100-sxm", nodes=[2, 8], network="roce-400g")`
    """
    given = locals()
    if not 0 < number("pays_ratio", pays_ratio) < 10:
        raise InputError(f"pays_ratio={pays_ratio!r}: not a share above 0", hint="pays_ratio=0.1")
    if experiment is not None and system is not None and not _has_cluster(given):
        raise InputError(
            "which cluster: the machine of the system file?",
            hint="predict_here(experiment, system), or name a cluster: gpu, nodes, network",
        )
    question = Question(
        properties=dict(_properties(given)),
        catalog=catalog_of(catalog),
        experiment=None if experiment is None else str(path_of("experiment", experiment)),
        system_file=path_or_none("system", system),
        measured_file=path_or_none("measured", measured),
        usd_per_gpu_hour=_price("usd_per_gpu_hour", usd_per_gpu_hour),
        tokens_count=None if tokens is None else token_count("tokens", tokens),
        pays_ratio=pays_ratio,
    )
    return Predictions(reply_to(question, is_cut=False, with_sweeps=False))


def _has_cluster(given: Mapping[str, object]) -> bool:
    words = ("gpu", "node", "nodes", "gpus_per_node", "network")
    return any(given[word] is not None for word in words)


def _price(name: str, value: float | None) -> float | None:
    """Raises InputError."""
    found = None if value is None else number(name, value)
    if found is not None and found > MOST_USD_PER_HOUR:
        raise InputError(f"{name}={shown(value)}: not a price", hint=f"{name}=2.95, in US dollars")
    return found


def _gradient_bytes(name: str, value: object) -> float:
    return GRADIENT_BYTES[one_of(*GRADIENT_BYTES)(name, value)]


def _not(name: str, value: object) -> bool:
    return not truth(name, value)


Read = Callable[[str, Any], object]
PROPERTIES: dict[str, tuple[str, Read]] = {
    "model": ("model", text),
    "gpu": ("gpu", text),
    "node": ("node", text),
    "strategy": ("strategy", one_of("ddp", "fsdp", "hsdp", "megatron")),
    "gpus_per_node": ("gpus_per_node", count),
    "tp": ("tensor_parallel", count),
    "pp": ("pipeline_parallel", count),
    "virtual_stages": ("virtual_stages", count),
    "cp": ("context_parallel", count),
    "ep": ("expert_parallel", count),
    "sequence_parallel": ("sequence_parallel", truth),
    "zero": ("zero_stage", count),
    "seq_len": ("seq_len", count),
    "micro_batch": ("micro_batch", number),
    "global_batch": ("global_batch", number),
    "accumulation": ("accumulation", count),
    "precision": ("precision", one_of("fp32", "tf32", "fp16", "bf16", "fp8")),
    "gradients": ("gradient_bytes", _gradient_bytes),
    "recompute": ("recompute", one_of("none", "selective", "full")),
    "flash_attention": ("flash_attention", truth),
    "compile": ("compiled", truth),
    "lora": ("lora", truth),
    "int4_base": ("quantized_base", truth),
    "cpu_offload": ("cpu_offload", truth),
    "keep_gathered": ("reshard_after_forward", _not),
    "data_stall_s": ("data_s", number),
    "checkpoint_stall_s": ("checkpoint_s", number),
    "framework": ("framework", text),
    "network": ("network", text),
    "nodes": ("nodes", count),
}
"""Parameter → field of `Properties`, and what reads a value. Rows go by network, then by size."""


def _properties(given: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Raises InputError."""
    for name, (field, read) in PROPERTIES.items():
        if given[name] is not None:
            yield field, values_of(name, given[name], read)


def _true_or_false(row: dict[str, object]) -> dict[str, object]:
    """`yes` and `no` are for CSV."""
    return {
        name: value == "yes" if value in ("yes", "no") else value for name, value in row.items()
    }
