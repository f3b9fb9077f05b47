"""Which needs does a placement violate?"""

from collections import defaultdict

from broadgauge.advise.storage.placement import Constraint, StoragePlacement
from broadgauge.specs.storage_table import ResumeReading, StoragePhase, StorageTable


def violated(placement: StoragePlacement, table: StorageTable) -> frozenset[Constraint]:
    """All of them. What is not known to hold does not hold."""
    needs = table.needs
    data = placement.of(StoragePhase.BATCH_LOADING).storage
    saves = placement.of(StoragePhase.CHECKPOINT_SAVING).storage
    holds = {
        Constraint.DURABLE_CHECKPOINTS: saves.is_durable or not needs.durable_checkpoints,
        Constraint.DURABLE_DATA: data.is_durable or not needs.durable_data,
        Constraint.RESUME_FROM: finds_checkpoints(placement, needs.resume_from),
        Constraint.LOSE_AT_MOST: _loses_little(placement, table),
        Constraint.ROOM: _has_room(placement, table),
        Constraint.BUDGET: needs.most_usd_per_hour is None
        or placement.price_usd_per_hour <= needs.most_usd_per_hour,
        Constraint.COLD_DATA: not (data.batch_cache == "warm" and data_exceeds_memory(table)),
    }
    return frozenset(constraint for constraint, is_held in holds.items() if not is_held)


def lost_at_most_s(placement: StoragePlacement, table: StorageTable) -> float | None:
    """Of training, when a node is lost at the worst moment; None: not known.

    Just before a save is durable, all since the begin of the one before it is lost: an interval
    between saves and the time to durable.
    """
    durable_s = placement.of(StoragePhase.CHECKPOINT_SAVING).storage.time_to_durable_s
    if durable_s is None or table.job.length_s is None or not table.job.saves:
        return None
    return table.job.length_s / table.job.saves + durable_s


def data_exceeds_memory(table: StorageTable) -> bool:
    """Can memory not keep the data set, so that a figure of warm data says nothing?"""
    data_bytes, memory_bytes = table.job.data_bytes, table.job.memory_bytes
    return data_bytes is not None and memory_bytes is not None and data_bytes > memory_bytes


def finds_checkpoints(placement: StoragePlacement, reading: ResumeReading) -> bool:
    """Does a resumed training find its checkpoints where the model is loaded from?"""
    loads = placement.of(StoragePhase.MODEL_LOADING).storage
    saves = placement.of(StoragePhase.CHECKPOINT_SAVING).storage
    if reading is ResumeReading.SAME_STORE:
        return loads.kept_in == saves.kept_in
    return reading is ResumeReading.ANYWHERE or loads.name == saves.name


def _loses_little(placement: StoragePlacement, table: StorageTable) -> bool:
    if table.needs.lose_at_most_s is None:
        return True
    lost_s = lost_at_most_s(placement, table)
    return lost_s is not None and lost_s <= table.needs.lose_at_most_s


def _has_room(placement: StoragePlacement, table: StorageTable) -> bool:
    """By store, whose room is that of the mount with the least."""
    if all(table.job.bytes_of(wait.phase) is None for wait in placement.waits):
        return True
    wanted: dict[str, int] = defaultdict(int)
    room: dict[str, int] = {}
    for wait in placement.waits:
        wanted[wait.storage.kept_in] += table.job.bytes_of(wait.phase) or 0
        if wait.storage.room_bytes is not None:
            known = room.get(wait.storage.kept_in, wait.storage.room_bytes)
            room[wait.storage.kept_in] = min(wait.storage.room_bytes, known)
    return all(wanted[store] <= room[store] for store in room)
