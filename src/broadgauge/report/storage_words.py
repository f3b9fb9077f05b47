"""How is it said what a choice of storages rests on?"""

from broadgauge.advise.storage.placement import Constraint, StoragePlacement
from broadgauge.specs.storage_table import ResumeReading, StoragePhase, StorageTable
from broadgauge.specs.units import show_size, show_time

PHASES = {
    StoragePhase.BATCH_LOADING: "batch loading",
    StoragePhase.MODEL_LOADING: "model loading",
    StoragePhase.CHECKPOINT_SAVING: "checkpoint saving",
}
READINGS = {
    ResumeReading.SAME_STORE: "the model is loaded from the store that keeps the checkpoints",
    ResumeReading.SAME_MOUNT: "the model is loaded from the mount that checkpoints are saved to",
    ResumeReading.ANYWHERE: "the model may be loaded from anywhere",
}


def constraint_words(constraint: Constraint, table: StorageTable) -> str:
    """The need, as a sentence without its end."""
    needs, job = table.needs, table.job
    if constraint is Constraint.RESUME_FROM:
        return READINGS[needs.resume_from]
    if constraint is Constraint.LOSE_AT_MOST:
        words = f"a lost node costs {wait_words(needs.lose_at_most_s or 0.0)} of training at most"
        if job.length_s is None or not job.saves:
            words += ", which is not known without `job.length_s` and `job.saves`"
        return words
    if constraint is Constraint.BUDGET:
        return f"storages cost ${needs.most_usd_per_hour:g} an hour at most"
    if constraint is Constraint.COLD_DATA:
        return (
            f"data of {show_size(job.data_bytes or 0)} does not stay in "
            f"{show_size(job.memory_bytes or 0)} of memory, so that figures of a warm cache say "
            "nothing"
        )
    return {
        Constraint.DURABLE_CHECKPOINTS: "checkpoints outlive the node",
        Constraint.DURABLE_DATA: "the data set outlives the node",
        Constraint.ROOM: "what is stored has room",
    }[constraint]


def excluded_words(constraint: Constraint, table: StorageTable) -> str:
    """Of a cell: what is wrong with the storage."""
    is_by_store = table.needs.resume_from is ResumeReading.SAME_STORE
    return {
        Constraint.DURABLE_CHECKPOINTS: "checkpoints not durable",
        Constraint.DURABLE_DATA: "data not durable",
        Constraint.RESUME_FROM: "other store" if is_by_store else "other mount",
        Constraint.LOSE_AT_MOST: "loses too much, or unknown",
        Constraint.ROOM: "no room",
        Constraint.BUDGET: "too dear",
        Constraint.COLD_DATA: "figure of a warm cache",
    }[constraint]


def wait_words(seconds: float) -> str:
    """As storages' figures are written: seconds up to ten minutes, hours from two on."""
    if seconds == 0:
        return "0 s"
    if 120 <= seconds < 600:
        return f"{seconds:.3g} s"
    if seconds >= 7200:
        return f"{seconds / 3600:.3g} h"
    return show_time(seconds)


def names_words(placement: StoragePlacement) -> str:
    """`shared-fs / s3-mount / s3-cached`, in the order of the phases."""
    return " / ".join(each.storage.name for each in placement.waits)


def spent_words(seconds: float, table: StorageTable) -> str:
    """`224 s, 0.26 % of 24 h`, with GPU hours and dollars where the job tells them."""
    job = table.job
    words = wait_words(seconds)
    if job.length_s:
        words += f", {100 * seconds / job.length_s:.3g} % of {wait_words(job.length_s)}"
    if job.gpus:
        gpu_hours = job.gpus * seconds / 3600
        words += f", {gpu_hours:.3g} GPU hours"
        if job.usd_per_gpu_hour:
            words += f", ${gpu_hours * job.usd_per_gpu_hour:,.2f}"
    return words
