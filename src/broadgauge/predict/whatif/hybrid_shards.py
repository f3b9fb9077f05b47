"""Can a run answer for HSDP? Its groups inside nodes use links that not every run tells of."""

from broadgauge.messages.strategies import split_of
from broadgauge.predict.asking.workload_case import why_unknown
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.runs.cases import RunCase
from broadgauge.specs.errors import InputError


def refuse_unknown_shards(base: RunCase, question: TrainingCase) -> None:
    """Raises InputError where nobody knows what this step, of the run or changed, waits for."""
    case, label = base.case, base.case.label
    unknown = why_unknown(base.workload, case.nodes, case.ranks_per_node)
    if unknown is not None:
        raise InputError(f"{label} can't be asked: {unknown}")
    if question.strategy != "hsdp":
        return
    try:
        ranks = split_of(
            "hsdp",
            world_size=question.gpus,
            ranks_per_node=question.gpus_per_node,
            shard_ranks=None,
        )
    except ValueError as error:
        raise InputError(f"{label} can't be asked for HSDP: {error}") from error
    if ranks.replicas > 1 and case.device == "cpu":
        raise InputError(
            f"{label} can't be asked for HSDP: it gathers inside nodes, and how fast ranks on "
            "cores exchange there is not known",
            hint="`broadgauge run` measures it; or --strategy ddp,fsdp",
        )
