"""skypilot-2025: steps, storages and whole jobs of Gemma 3 12B on Nebius."""

from broadgauge.catalog.articles import Articles, StorageBandwidth, StoragePhases
from broadgauge.catalog.models import find_model
from broadgauge.predict.articles.recomputed.figure import RecomputedFigure
from broadgauge.predict.articles.two_gpus import gemma_case

STEPS_WORK = "gemma3-12b-fsdp"
PHASES = {
    "batch": "batch_loading_per_100_samples",
    "load": "model_loading",
    "save": "checkpoint_saving",
}
HOUR_S = 3600


def phase_s(tables: Articles, phase: str, storage: str) -> float:
    """One figure of the summary table."""
    seconds: float = getattr(_phases(tables, storage), PHASES[phase])
    return seconds


def by_step(tables: Articles) -> RecomputedFigure:
    """Mean step of Ethernet over InfiniBand's."""
    slow, fast = tables.step_seconds
    how = f"{slow.seconds:g} over {fast.seconds:g} s a step"
    return RecomputedFigure(number=slow.seconds / fast.seconds, how=how)


def by_total(tables: Articles) -> RecomputedFigure:
    """Whole job over whole job."""
    slow, fast = tables.step_seconds
    how = f"{slow.total_minutes:g} over {fast.total_minutes:g} minutes"
    return RecomputedFigure(number=slow.total_minutes / fast.total_minutes, how=how)


def total_minutes(tables: Articles, network: str) -> RecomputedFigure:
    """80 steps at the mean step."""
    (row,) = (each for each in tables.step_seconds if each.network == network)
    steps = _steps(tables)
    how = f"{steps} × {row.seconds:g} s"
    return RecomputedFigure(unit="minutes", number=steps * row.seconds / 60, how=how)


def by_reduce_scatter(tables: Articles) -> RecomputedFigure:
    """The first one of the backward pass."""
    slow, fast = tables.reduce_scatter_ms
    how = f"{slow.milliseconds:g} over {fast.milliseconds:g} ms"
    return RecomputedFigure(number=slow.milliseconds / fast.milliseconds, how=how)


def reduce_scatter_gbps(tables: Articles, network: str) -> RecomputedFigure:
    """What left a node in it, if it is one layer's, bf16, over 16 GPUs."""
    (row,) = (each for each in tables.reduce_scatter_ms if each.network == network)
    rate = gemma_case(network, row.milliseconds / 1e3).fabric.measured_node_gbyte_per_s
    assert rate is not None
    how = f"a layer's bf16 gradients, 15/16 of them, in {row.milliseconds:g} ms: {rate:.3g} GB/s"
    nominal = 8 * nics_gbyte_per_s(tables).number
    if network == "infiniband":
        how += f", {100 * 8 * rate / nominal:.0f} % of {nominal:,g} Gbit/s"
    return RecomputedFigure(unit="Gbit/s", number=8 * rate, how=how)


def nics_gbyte_per_s(tables: Articles) -> RecomputedFigure:
    """Eight NICs."""
    rate = tables.systems["nebius-h100"].networks["infiniband"].nominal_gbps
    assert rate is not None
    return RecomputedFigure(unit="GB/s", number=8 * rate / 8, how=f"8 × {rate:g} Gbit/s, nominal")


def ethernet_gbyte_per_s(tables: Articles) -> RecomputedFigure:
    """One NIC."""
    rate = tables.systems["nebius-h100"].networks["eth10"].nominal_gbps
    assert rate is not None
    return RecomputedFigure(unit="GB/s", number=rate / 8, how=f"{rate:g} Gbit/s, nominal")


def models_ratio(tables: Articles) -> RecomputedFigure:
    """All parameters of the large model over those of the small one."""
    names = (tables.workloads[name].model for name in ("gpt-oss-120b-fsdp", STEPS_WORK))
    large, small = (find_model((name or "").removesuffix("-it")) for name in names)
    how = (
        f"{large.params / 1e9:.4g} over {small.params / 1e9:.4g}×10⁹ parameters; active "
        f"{large.active_params / 1e9:.3g}×10⁹"
    )
    return RecomputedFigure(number=large.params / small.params, how=how)


def phases_ratio(tables: Articles, phase: str, slow: str, fast: str) -> RecomputedFigure:
    """One storage's time over another's."""
    here, there = phase_s(tables, phase, slow), phase_s(tables, phase, fast)
    return RecomputedFigure(
        number=here / there, how=f"{here:g} s ({slow}) over {there:g} s ({fast})"
    )


def share_of_an_hour(tables: Articles) -> RecomputedFigure:
    """Of one save, in percent, and what of it the durable alternative avoids."""
    slow, fast = phase_s(tables, "save", "s3-mount"), phase_s(tables, "save", "s3-cached")
    how = f"{slow:g} of {HOUR_S:,} s"
    avoided = 100 * (slow - fast) / HOUR_S
    how += f", if one save falls into each hour; with s3-cached {fast:g} s: {avoided:.1f} % avoided"
    return RecomputedFigure(unit="%", number=100 * slow / HOUR_S, how=how)


def load_gbyte_per_s(tables: Articles, storage: str) -> RecomputedFigure:
    """The model's bf16 weights over the time of loading it, nothing fixed taken out."""
    seconds = phase_s(tables, "load", storage)
    gbytes = 2 * find_model("gemma-3-12b").params / 1e9
    how = f"{gbytes:.1f} GB in {seconds:g} s"
    return RecomputedFigure(unit="GB/s", number=gbytes / seconds, how=how)


def durable_load_ratio(tables: Articles) -> RecomputedFigure:
    """The chosen storage's loading over that of the quickest durable one."""
    chosen = tables.storage_choice_published.model_loading
    return phases_ratio(tables, "load", chosen, "shared-fs")


def fast_side_load_ratio(tables: Articles) -> RecomputedFigure:
    """Loading in the "optimised" whole job over loading from the chosen storage."""
    fast = tables.end_to_end.fast.storage
    return phases_ratio(tables, "load", fast, tables.storage_choice_published.model_loading)


def is_one_storage(tables: Articles) -> RecomputedFigure:
    """1 where checkpoints are saved to what models are loaded from."""
    chosen = tables.storage_choice_published
    is_one = chosen.model_loading == chosen.checkpoint_saving
    how = f"models from {chosen.model_loading}, checkpoints to {chosen.checkpoint_saving}"
    return RecomputedFigure(unit="", number=float(is_one), how=how)


def end_to_end(tables: Articles, saves: int) -> RecomputedFigure:
    """80 steps, one load and some saves, slow configuration over fast."""
    job = tables.end_to_end
    step_s = {each.network: each.seconds for each in tables.step_seconds}
    slow, fast = (
        _steps(tables) * step_s[side.network]
        + phase_s(tables, "load", side.storage)
        + saves * phase_s(tables, "save", side.storage)
        for side in (job.slow, job.fast)
    )
    times = "1 save" if saves == 1 else f"{saves} saves"
    how = f"{_steps(tables)} steps, one load, {times}: {slow:,.0f} over {fast:,.0f} s"
    return RecomputedFigure(number=slow / fast, how=how)


def save_against_rate(tables: Articles) -> RecomputedFigure:
    """MOUNT_CACHED's save over the shared file system's, which writes so much faster."""
    cached, shared = _rates(tables, "s3-cached"), _rates(tables, "shared-fs")
    times = shared.write_gbyte_per_s / cached.write_gbyte_per_s
    ratio = phases_ratio(tables, "save", "shared-fs", "s3-cached")
    how = f"{ratio.how}, though shared-fs writes {times:.1f} times as fast by their other table"
    return RecomputedFigure(number=ratio.number, how=how)


def saved_gbyte(tables: Articles, slow: str, fast: str) -> RecomputedFigure:
    """Bytes that two saves imply, if each took one fixed part and its stated rate."""
    rates = _rates(tables, slow).write_gbyte_per_s, _rates(tables, fast).write_gbyte_per_s
    seconds = phase_s(tables, "save", slow) - phase_s(tables, "save", fast)
    gbytes = seconds / (1 / rates[0] - 1 / rates[1])
    params = find_model("gemma-3-12b").params
    how = (
        f"{seconds:g} s between {rates[0]:g} and {rates[1]:g} GB/s; weights and two moments are "
        f"{6 * params / 1e9:.0f} GB in bf16"
    )
    return RecomputedFigure(unit="GB", number=gbytes, how=how)


def batches_at_one_rate(tables: Articles) -> RecomputedFigure:
    """MOUNT over MOUNT_CACHED in batch loading, at equal read rates."""
    rate = _rates(tables, "s3-mount").read_gbyte_per_s
    ratio = phases_ratio(tables, "batch", "s3-mount", "s3-cached")
    return RecomputedFigure(
        number=ratio.number, how=f"{ratio.how}, both said to read {rate:g} GB/s"
    )


def _phases(tables: Articles, storage: str) -> StoragePhases:
    (found,) = (row for row in tables.storage_phases_seconds if row.storage == storage)
    return found


def _rates(tables: Articles, storage: str) -> StorageBandwidth:
    (found,) = (row for row in tables.storage_bandwidth if row.storage == storage)
    return found


def _steps(tables: Articles) -> int:
    steps = tables.workloads[STEPS_WORK].steps
    assert steps is not None
    return steps
