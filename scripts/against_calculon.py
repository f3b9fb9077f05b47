"""What does Calculon answer for the rows of a table of published step times?

Calculon (github.com/calculon-ai/calculon, Isaev et al., SC 2023) is no dependency: give the path of
a checkout. Writes its step times by row id for `broadgauge validate TABLE.csv --peer`, and counts
the rows that it can't express, by reason.

    python scripts/against_calculon.py CHECKOUT references/measured-training.csv OUT.csv
"""

import collections
import copy
import csv
import importlib
import json
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from broadgauge.catalog.gpus import find_gpu_named
from broadgauge.predict.facts.shapes import infer_shapes
from broadgauge.predict.tables.table import StepRow, read_table

SYSTEMS = {
    "a100-sxm-40gb": "a100_80g.json",
    "a100-sxm-80gb": "a100_80g.json",
    "h100-sxm": "h100_80g_nvl8.json",
}
"""Its system files by our GPU names; it has none for others."""
DATATYPES = {"fp16": "float16", "bf16": "float16", "fp8": "float8"}
RECOMPUTES = {"none": "none", "selective": "attn_only", "full": "full"}
NO_LIMIT_GIB = 10_000
"""All rows ran, so its check of the memory's size is switched off."""


class InexpressibleError(ValueError):
    """Calculon has no words for this row."""


def main(checkout: Path, table_path: Path, out_path: Path) -> None:
    """Every row, in order."""
    sys.path.insert(0, str(checkout))
    sys.modules.setdefault("psutil", ModuleType("psutil"))  # only its search needs it
    table = read_table(table_path.read_bytes(), table_path.name)
    reasons: collections.Counter[str] = collections.Counter()
    times: list[tuple[str, float]] = []
    for row in table.rows:
        try:
            times.append((row.id, step_s(checkout, row)))
        except InexpressibleError as error:
            reasons[str(error)] += 1
    with out_path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "step_time_s"))
        writer.writerows((name, f"{time_s:.6g}") for name, time_s in times)
    print(f"{len(times)} of {len(table.rows)} rows; not expressed:")
    for reason, number in reasons.most_common():
        print(f"  {number:4d} {reason}")


def step_s(checkout: Path, row: StepRow) -> float:
    """What Calculon says. Raises InexpressibleError."""
    system, execution = system_of(checkout, row), execution_of(row)
    llm = importlib.import_module("calculon.llm.llm").Llm
    system_class = importlib.import_module("calculon.system").System
    model = llm(llm.Application(application_of(row)), logging.getLogger("calculon"))
    try:
        machine = system_class(system)
        model.compile(machine, llm.Execution.from_json(execution))
        model.run(machine)
    except (AssertionError, llm.Error) as error:
        raise InexpressibleError(f"Calculon refuses: {error}") from error
    return float(model.get_total_time())


def application_of(row: StepRow) -> dict[str, int]:
    """Its transformer: hidden, feed-forward width, heads, blocks; no vocabulary."""
    case = row.case
    shapes = infer_shapes([case.model])
    heads = int(shapes.heads[0])
    # Its MLP has two matrices: as wide as holds the parameters of the row's MLP.
    feedforward = float(shapes.mlp_params[0]) / (2 * case.model.hidden)
    return {
        "hidden": case.model.hidden,
        "feedforward": round(feedforward / 8) * 8,
        "seq_size": case.seq_len,
        "attn_heads": heads,
        "attn_size": case.model.hidden // heads,
        "num_blocks": case.model.layers,
    }


def execution_of(row: StepRow) -> dict[str, Any]:
    """Raises InexpressibleError for what it has no words for."""
    case = row.case
    checks = (
        (case.model.architecture == "decoder", f"architecture {case.model.architecture}"),
        (case.strategy in ("ddp", "megatron"), "parameters are sharded (FSDP, HSDP, ZeRO-3)"),
        (case.zero_stage in (None, 0, 1), f"ZeRO stage {case.zero_stage}"),
        (not case.lora, "LoRA"),
        (not case.cpu_offload, "CPU offload"),
        (case.context_parallel == 1, "context parallelism"),
        (case.precision in DATATYPES, f"arithmetic {case.precision}"),
        (case.recompute in RECOMPUTES, f"recomputation {case.recompute}"),
        (float(case.micro_batch).is_integer(), "a micro-batch that is no whole number"),
        (float(case.global_batch).is_integer(), "a global batch that is no whole number"),
    )
    for is_fine, reason in checks:
        if not is_fine:
            raise InexpressibleError(reason)
    is_split_data = case.data_parallel > 1
    across = 0 if case.nodes == 1 else 1
    return {
        "num_procs": case.gpus,
        "tensor_par": case.tensor_parallel,
        "pipeline_par": case.pipeline_parallel,
        "data_par": case.data_parallel,
        "tensor_par_net": 0,
        "pipeline_par_net": across,
        "data_par_net": across,
        "batch_size": int(case.global_batch),
        "microbatch_size": int(case.micro_batch),
        "datatype": DATATYPES[case.precision],
        "fused_activation": False,
        "attention_type": "multihead",
        "activation_recompute": RECOMPUTES[case.recompute],
        "pipeline_interleaving": case.virtual_stages,
        "optimizer_sharding": case.zero_stage == 1 and is_split_data,
        "tensor_par_comm_type": "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": False,
        "data_par_overlap": case.strategy == "ddp" and is_split_data,
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }


def system_of(checkout: Path, row: StepRow) -> dict[str, Any]:
    """Its own system file, with as many GPUs a node as the row has and the row's nominal rate."""
    case = row.case
    if case.gpu not in SYSTEMS:
        raise InexpressibleError(f"no system file for {case.gpu}")
    path = checkout / "systems" / SYSTEMS[case.gpu]
    system: dict[str, Any] = copy.deepcopy(json.loads(path.read_text(encoding="utf-8")))
    inside, between = system["networks"]
    inside["size"] = max(2, case.gpus_per_node)
    inside["must_be_filled"] = False
    if case.fabric.node_gbps is not None:
        between["bandwidth"] = case.fabric.node_gbps / 8 / case.gpus_per_node
    memory = system["mem1"]
    memory["GiB"] = NO_LIMIT_GIB
    memory["GBps"] = min(memory["GBps"], find_gpu_named(case.gpu).memory_gbyte_per_s)
    return system


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*(Path(word) for word in sys.argv[1:]))
