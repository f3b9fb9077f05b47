"""Tables of published step times, as small as a test needs."""

from broadgauge.predict.tables.table import MeasuredTable, read_table

ROW = {
    "id": "row-0",
    "source": "somebody",
    "model": "GPT 1B",
    "architecture": "decoder",
    "params": "1.3e9",
    "active_params": "1.3e9",
    "layers": "24",
    "hidden": "2048",
    "heads": "16",
    "vocabulary": "50257",
    "seq_len": "2048",
    "global_batch": "64",
    "micro_batch": "4",
    "dtype": "bf16",
    "strategy": "ddp",
    "data_parallel": "16",
    "tensor_parallel": "1",
    "pipeline_parallel": "1",
    "virtual_stages": "",
    "context_parallel": "1",
    "zero_stage": "",
    "recompute": "none",
    "flash_attention": "yes",
    "compiled": "no",
    "lora": "no",
    "quantized_base": "no",
    "cpu_offload": "no",
    "framework": "torch",
    "gpu": "h100-sxm",
    "nodes": "2",
    "gpus_per_node": "8",
    "node_gbps": "400",
    "node_gbps_basis": "nominal",
    "transport": "infiniband",
    "measured_node_gbyte_per_s": "",
    "step_time_s": "1.25",
    "flags": "",
}


def csv_of(*rows: dict[str, str], columns: tuple[str, ...] | None = None) -> str:
    """A CSV of rows that differ from ROW as said."""
    full = [ROW | row for row in rows]
    names = columns or tuple(full[0])
    lines = [",".join(names)]
    lines += [",".join(row.get(name, "") for name in names) for row in full]
    return "\n".join(lines) + "\n"


def table_of(*rows: dict[str, str]) -> MeasuredTable:
    """What is read of them."""
    return read_table(csv_of(*rows).encode(), "table.csv")
