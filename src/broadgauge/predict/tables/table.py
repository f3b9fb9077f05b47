"""Which rows of a table of published step times can be read, and why not the others?

The format is that of references/measured-training.csv; its columns are described in
docs/validation.md. A row that can't be read is listed with its line and the reason and never
dropped silently; a file that isn't such a table raises InputError.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from broadgauge.catalog.entries import plain
from broadgauge.catalog.gpus import Gpu, find_gpu, find_gpu_named
from broadgauge.predict.case import Fabric, ModelShape, TrainingCase, own_gpu_of
from broadgauge.predict.facts.splits import split_fault_of
from broadgauge.predict.tables.cells import BadCellError, Cells
from broadgauge.predict.tables.lines import TableLine, read_records
from broadgauge.predict.tables.recomputed import as_they_ran
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError

REQUIRED = (
    *("params", "layers", "hidden", "vocabulary", "seq_len", "global_batch", "micro_batch"),
    *("dtype", "strategy", "gpu", "step_time_s"),
)
"""Without these columns nothing can be predicted or scored."""
OPTIONAL = (
    *("id", "source", "model", "architecture", "active_params", "heads"),
    *("data_parallel", "tensor_parallel", "pipeline_parallel", "virtual_stages"),
    *("context_parallel", "zero_stage", "recompute", "flash_attention", "compiled", "lora"),
    *("quantized_base", "cpu_offload", "framework", "nodes", "gpus_per_node", "node_gbps"),
    *("transport", "measured_node_gbyte_per_s", "flags"),
)
UNREAD = ("origin", "node_gbps_basis")
"""Columns that help a reader of the table."""
PRECISIONS = {
    **{name: name for name in ("fp32", "tf32", "fp16", "bf16", "fp8")},
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
}
TRANSPORTS = {
    **{name: name for name in ("none", "infiniband", "roce", "efa", "sriov-tcp", "tcp")},
    **{name: name for name in ("virtio", "overlay", "unknown")},
    "": "unknown",
    "ib": "infiniband",
    "ethernet": "tcp",
    "not-stated": "unknown",
}
RECOMPUTES = {name: name for name in ("none", "selective", "full", "unknown")} | {"": "unknown"}
QUANTIZED = {"": False, "no": False, "none": False, "int4": True, "nf4": True, "yes": True}
FindGpu = Callable[[str], Gpu]
"""By its name. Raises InputError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One published step time and the training that it is of."""

    line: int
    """In the file, the header is 1."""
    id: str
    source: str
    flags: tuple[str, ...]
    """What the table's author doubts: inferred dimensions, offload, contradictory repeats."""
    case: TrainingCase
    step_time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRow:
    """A row that is not scored."""

    line: int
    id: str
    source: str
    reason: str
    stage: Literal["table", "prediction"] = "table"
    """Where it stopped: at reading it, or because no prediction can be made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """What a file holds."""

    name: str
    rows: tuple[StepRow, ...]
    unread: tuple[UnreadRow, ...]
    notes: tuple[str, ...] = ()
    """Of the whole file: columns that are missing, ids that stand twice."""


def read_table(data: bytes, filename: str, find: FindGpu = find_gpu_named) -> MeasuredTable:
    """The rows of a CSV file. Raises InputError where it isn't such a table at all."""
    header, records, broken = read_records(data, filename, known=(*REQUIRED, *OPTIONAL))
    _check_columns(header, filename)
    rows: list[StepRow] = []
    unread = [UnreadRow(line=line, id="", source="", reason=reason) for line, reason in broken]
    for record in records:
        try:
            rows.append(_row(record, filename, find))
        except BadCellError as error:
            cells = record.cells
            unread.append(
                UnreadRow(
                    line=record.line,
                    id=cells.get("id", ""),
                    source=cells.get("source", ""),
                    reason=str(error),
                )
            )
    cases = as_they_ran([row.case for row in rows])
    return MeasuredTable(
        name=filename,
        rows=tuple(replace(row, case=case) for row, case in zip(rows, cases, strict=True)),
        unread=tuple(sorted(unread, key=lambda each: each.line)),
        notes=(*_notes(header, rows), *_recomputed_note(rows, cases)),
    )


def _check_columns(header: tuple[str, ...], filename: str) -> None:
    missing = [column for column in REQUIRED if column not in header]
    if not missing:
        return
    extra = [column for column in header if column not in (*REQUIRED, *OPTIONAL, *UNREAD)]
    words = ", ".join(f"`{column}`" for column in missing)
    closest = did_you_mean(missing[0], extra) if len(extra) > 16 or extra else None
    hint = (
        closest if closest and closest.startswith("did") else "docs/validation.md has all columns"
    )
    noun = "column" if len(missing) == 1 else "columns"
    raise InputError(f"{filename}: the table has no {noun} {words}", hint=hint)


def _recomputed_note(rows: list[StepRow], cases: list[TrainingCase]) -> list[str]:
    pairs = zip(rows, cases, strict=True)
    lines = [str(row.line) for row, case in pairs if case.recomputed_ratio > 0]
    if not lines:
        return []
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(lines[:12])}"
    more = f" and {len(lines) - 12} more" if len(lines) > 12 else ""
    return [f"{where}{more}: taken with the layers recomputed that make them fit into their GPUs"]


def _notes(header: tuple[str, ...], rows: list[StepRow]) -> list[str]:
    absent = [column for column in OPTIONAL if column not in header]
    notes = [f"no column `{column}`: taken as empty in each row" for column in absent]
    lines: dict[str, list[int]] = {}
    for row in rows:
        lines.setdefault(row.id, []).append(row.line)
    for name, places in lines.items():
        if len(places) > 1:
            where = ", ".join(str(line) for line in places)
            notes.append(f"id `{name}` stands in lines {where}: each is scored")
    return notes


def _row(record: TableLine, filename: str, find: FindGpu) -> StepRow:
    """Raises BadCellError."""
    cells = Cells(record.cells)
    step_time_s = cells.number("step_time_s")
    source = cells.text("source") or filename
    name = cells.text("id") or f"line {record.line}"
    flags = tuple(flag.strip() for flag in cells.text("flags").split(";") if flag.strip())
    case = _case(cells, name, _gpu(cells.text("gpu"), find))
    fault = split_fault_of(case)
    if fault is not None:
        raise BadCellError(f"{fault[0]} ({fault[1]})" if fault[1] else fault[0])
    return StepRow(
        line=record.line,
        id=name,
        source=source,
        flags=flags,
        case=case,
        step_time_s=step_time_s,
    )


def _case(cells: Cells, name: str, gpu: Gpu) -> TrainingCase:
    strategy = cells.choice("strategy", {s: s for s in ("ddp", "fsdp", "hsdp", "megatron")})
    nodes = cells.count("nodes", 1)
    gpus_per_node = cells.count("gpus_per_node", 1)
    tensor_parallel = cells.count("tensor_parallel", 1)
    pipeline_parallel = cells.count("pipeline_parallel", 1)
    context_parallel = cells.count("context_parallel", 1)
    gpus = nodes * gpus_per_node
    split = tensor_parallel * pipeline_parallel * context_parallel
    data_parallel = cells.count("data_parallel", max(1, gpus // split))
    if split * data_parallel != gpus:
        raise BadCellError(
            f"data × tensor × pipeline × context parallel is {split * data_parallel}, "
            f"and nodes × gpus_per_node {nodes} × {gpus_per_node} = {gpus}"
        )
    model = _model(cells)
    zero_stage = cells.optional_count("zero_stage", at_least=0, at_most=3)
    framework = cells.word("framework") or "unknown"
    return TrainingCase(
        name=name,
        model=model,
        gpu=gpu.name,
        own_gpu=own_gpu_of(gpu),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        fabric=_fabric(cells, nodes),
        strategy=strategy,
        data_parallel=data_parallel,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        context_parallel=context_parallel,
        virtual_stages=cells.count("virtual_stages", 1),
        zero_stage=zero_stage,
        seq_len=cells.count("seq_len"),
        global_batch=cells.number("global_batch"),
        micro_batch=cells.number("micro_batch"),
        precision=cells.choice("dtype", PRECISIONS),
        recompute=cells.choice("recompute", RECOMPUTES),
        flash_attention=cells.yes_or_no("flash_attention"),
        compiled=cells.yes_or_no("compiled"),
        lora=cells.yes_or_no("lora"),
        quantized_base=cells.choice("quantized_base", QUANTIZED),
        cpu_offload=cells.yes_or_no("cpu_offload"),
        framework=framework,
        # FSDP's SHARD_GRAD_OP is ZeRO stage 2: parameters stay gathered until the backward pass
        # ends (Zhao et al. 2023, section 3.2; Rajbhandari et al. 2020, section 5).
        reshard_after_forward=not (strategy in ("fsdp", "hsdp") and zero_stage == 2),
    )


def _model(cells: Cells) -> ModelShape:
    params = cells.number("params")
    active_params = cells.optional_number("active_params") or params
    if active_params > params:
        raise BadCellError(f"`active_params` {active_params:g} is more than `params` {params:g}")
    architecture = cells.choice(
        "architecture",
        {"": "decoder", "decoder": "decoder", "encoder": "encoder", "moe": "moe"},
    )
    return ModelShape(
        name=cells.text("model"),
        architecture=architecture,
        layers=cells.count("layers"),
        hidden=cells.count("hidden"),
        heads=cells.optional_count("heads", at_least=1),
        vocabulary=cells.count("vocabulary"),
        params=params,
        active_params=active_params,
    )


def _fabric(cells: Cells, nodes: int) -> Fabric:
    """What joins the nodes; nothing does where there is one."""
    transport = cells.choice("transport", TRANSPORTS)
    if nodes == 1:
        return Fabric()
    return Fabric(
        transport="unknown" if transport == "none" else transport,
        node_gbps=cells.optional_number("node_gbps"),
        measured_node_gbyte_per_s=cells.optional_number("measured_node_gbyte_per_s"),
    )


def _gpu(name: str, find: FindGpu) -> Gpu:
    """Raises BadCellError with what was meant."""
    if not name:
        raise BadCellError("`gpu` is empty")
    try:
        return find(name)
    except InputError as error:
        is_device_name = plain(name).split("-")[0] in ("nvidia", "amd", "tesla")
        by_device = find_gpu(name) if is_device_name else None
        if by_device is not None:
            return by_device
        hint = f" ({error.hint})" if error.hint else ""
        raise BadCellError(f"the catalog has no GPU `{name}`{hint}") from None


def columns_in_words() -> Mapping[str, str]:
    """What does each column hold? For docs/validation.md."""
    return {
        "id": "name of the row; empty: its line",
        "source": "who published it; scores are also given by source",
        "origin": "where in the source",
        "model": "its name, in words",
        "architecture": "decoder, encoder, moe",
        "params, active_params": "counts; they differ for mixtures of experts",
        "layers, hidden, heads, vocabulary, seq_len": "of the model; heads may be empty",
        "global_batch, micro_batch": "sequences a step in all, and a rank and pass",
        "dtype": "fp32, tf32, fp16, bf16, fp8",
        "strategy": "ddp, fsdp, hsdp, megatron",
        "data_parallel, tensor_parallel, pipeline_parallel, context_parallel": (
            "degrees; their product is nodes × gpus_per_node"
        ),
        "virtual_stages, zero_stage": "of an interleaved pipeline, of ZeRO; may be empty",
        "recompute": "none, selective, full, unknown",
        "flash_attention, compiled, lora, cpu_offload": "yes or no",
        "quantized_base": "no or int4",
        "framework": "as in the catalog; another gets the prior of all frameworks",
        "gpu": "as in the catalog",
        "nodes, gpus_per_node": "counts",
        "node_gbps, node_gbps_basis": "10^9 bit/s of a whole node; nominal or not stated",
        "transport": "none (one node), infiniband, roce, efa, tcp, unknown",
        "measured_node_gbyte_per_s": "where the source measured it",
        "step_time_s": "the figure that is scored",
        "flags": "what is doubtful, separated by `;`",
        "published_*": "the source's own words: evidence, never read",
    }
