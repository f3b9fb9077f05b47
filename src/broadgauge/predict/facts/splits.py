"""Can this model be split so? What no software could run, whatever its batch and its cluster."""

from collections.abc import Callable, Iterator

from broadgauge.predict.case import TrainingCase

Fault = tuple[str, str | None]
"""What is wrong, and what would work."""
SplitRule = Callable[[TrainingCase], Iterator[Fault]]


def split_fault_of(case: TrainingCase) -> Fault | None:
    """The first thing that is wrong with it; None: it can be."""
    return next((fault for rule in SPLIT_RULES for fault in rule(case)), None)


def _layers(case: TrainingCase) -> Iterator[Fault]:
    model, stages = case.model, case.pipeline_parallel * case.virtual_stages
    if stages > model.layers:
        each = f" of {case.virtual_stages} parts" if case.virtual_stages > 1 else ""
        yield (
            f"{case.pipeline_parallel} pipeline stages{each} are more than the {model.layers} "
            f"layers of {_name(case)}",
            f"at most {model.layers // case.virtual_stages} stages",
        )
    if case.virtual_stages > 1 and case.pipeline_parallel == 1:
        yield "virtual stages without pipeline stages", "leave them out, or more pipeline stages"


def _tensors(case: TrainingCase) -> Iterator[Fault]:
    model, degree = case.model, case.tensor_parallel
    for number, what in ((model.heads, "attention heads"), (model.hidden, "hidden")):
        if number is not None and number % degree:
            size = f"{number} {what}" if what != "hidden" else f"hidden size {number}"
            yield (
                f"{_name(case)} has {size}, which do not divide by tensor parallel {degree}",
                f"one of {divisors(number)}",
            )
    if model.ffn_hidden is not None and model.ffn_hidden % degree:
        yield (
            f"the MLP of {_name(case)} is {model.ffn_hidden} wide, which does not divide by tensor "
            f"parallel {degree}",
            f"one of {divisors(model.ffn_hidden)}",
        )


def _sequences(case: TrainingCase) -> Iterator[Fault]:
    if case.seq_len % case.context_parallel:
        yield (
            f"a sequence of {case.seq_len} tokens does not divide by context parallel "
            f"{case.context_parallel}",
            None,
        )


SPLIT_RULES: tuple[SplitRule, ...] = (_layers, _tensors, _sequences)


def _name(case: TrainingCase) -> str:
    return case.model.name or "the model"


def divisors(number: int) -> str:
    """Its divisors up to 128, in words."""
    found = [each for each in range(1, min(number, 128) + 1) if number % each == 0]
    return ", ".join(map(str, found))
