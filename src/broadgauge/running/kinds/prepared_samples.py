"""Can a training read this prepared set? What can be seen before any rank starts."""

from pathlib import Path

from broadgauge.messages.prepared_set import PreparedSet, PreparedSetError, read_prepared_set
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.prepared_data import Packing
from broadgauge.specs.workloads.workload import TrainedModel


def check_prepared(
    what: str, folder: Path, *, model: TrainedModel, packing: Packing | None
) -> None:
    """`what`: the key, in words, which each message begins with. Raises InputError."""
    try:
        described = read_prepared_set(folder)
    except PreparedSetError as error:
        raise InputError(f"{what}: {error}") from error
    if described.vocabulary > model.vocabulary:
        raise InputError(
            f"{what} has a vocabulary of {described.vocabulary:,} tokens, and the model's is "
            f"{model.vocabulary:,}",
            hint=f"model: {{vocabulary: {described.vocabulary}}}",
        )
    if packing is not None:
        _check_lengths(what, described, model.seq_len, packing)
    elif described.num_counted is not None:
        raise InputError(
            f"{what} has a loss of an assistant's tokens alone, which sequences that are cut "
            "anywhere can't have",
            hint="packing: {max_batch_len: …, effective_batch_size: …} takes whole samples",
        )


def _check_lengths(what: str, described: PreparedSet, seq_len: int, packing: Packing) -> None:
    """By those lengths that the set's description names; the ranks look at all of them."""
    lengths, budget = described.lengths, packing.max_batch_len
    if lengths.shortest > budget:
        raise InputError(
            f"{what}: no sample fits `max_batch_len`, {budget:,} tokens: the shortest has "
            f"{lengths.shortest:,}, the longest {lengths.longest:,}",
            hint=f"packing: {{max_batch_len: {lengths.longest}}} leaves none out",
        )
    known = (
        *(lengths.longest, lengths.p99, lengths.p95, lengths.p75),
        *(lengths.median, lengths.p25, lengths.shortest),
    )
    taken = max(each for each in known if each <= budget)
    if taken > seq_len:
        raise InputError(
            f"{what} has samples of {taken:,} tokens that fit `max_batch_len`, and the model "
            f"takes {seq_len:,} (`seq_len`)",
            hint=f"model: {{seq_len: {taken}}} or more, or prepare it with --max-length {seq_len}",
        )
