"""Does the predictor learn a GPU from its system file, and from no other?"""

import pytest
from tests.predict.making_systems import MODEL, system, timing

from broadgauge.catalog.gpus import find_gpu_named, known_gpus
from broadgauge.predict.calibration.factors import Observation, step_s
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.system.knowledge import (
    calibrated_by,
    gpu_of,
    observations_of,
)
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import StepTime, System
from broadgauge.specs.workloads.gpt import GptModel

LARGE = GptModel(layers=8, hidden=2048, heads=16, vocabulary=50_257, seq_len=1024)


def gpu_system(name: str = "NVIDIA H200", slowdown: float = 1.0) -> System:
    """Whose steps are the predictor's own, times `slowdown`."""
    plain = system()
    device = plain.device.model_copy(update={"kind": "cuda", "name": name, "count": 2})
    steps = tuple(
        StepTime(model=model, dtype="bfloat16", batch=batch, time=timing(1.0))
        for model, batch in ((LARGE, 4), (LARGE, 8), (MODEL, 2))
    )
    compute = plain.compute.model_copy(update={"steps": steps})
    made = plain.model_copy(update={"device": device, "compute": compute})
    if name != "NVIDIA H200":
        return made
    cases = [each.case for each in observations_of(made)]
    predicted_s = step_s(cases, default_knowledge()) * slowdown
    timed = tuple(
        step.model_copy(update={"time": timing(float(seconds))})
        for step, seconds in zip(steps, predicted_s, strict=True)
    )
    return made.model_copy(update={"compute": compute.model_copy(update={"steps": timed})})


@pytest.mark.parametrize("slowdown", [0.8, 1.0, 1.3])
def test_a_slower_gpu_is_learnt(slowdown: float) -> None:
    made = gpu_system(slowdown=slowdown)
    known = calibrated_by(made, default_knowledge())
    rows: tuple[Observation, ...] = observations_of(made)
    errors = step_s([row.case for row in rows], known) / [row.step_time_s for row in rows] - 1
    assert abs(errors[:2]).max() < 0.05


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (system(), "is of cores"),
        (gpu_system("Nobody's GPU"), "the catalog doesn't know: Nobody's GPU"),
    ],
)
def test_what_the_predictor_cannot_learn_is_refused(made: System, message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrated_by(made, default_knowledge())


def test_a_gpu_of_no_catalog_takes_the_facts_that_are_lent_to_it() -> None:
    made, lent = gpu_system("Nobody's GPU"), find_gpu_named("h200-sxm")
    assert gpu_of(made, asked=lent) is lent
    assert {row.case.gpu for row in observations_of(made, lent)} == {"h200-sxm"}
    assert gpu_of(gpu_system(), asked=find_gpu_named("l40s")).name == "h200-sxm"


def test_the_users_own_entry_is_what_its_steps_are_of() -> None:
    mine = find_gpu_named("h200-sxm").model_copy(update={"name": "ours", "matches": ("Nobody's",)})
    made = gpu_system("Nobody's GPU")
    entry = gpu_of(made, (mine, *known_gpus()))
    assert entry is mine
    assert {row.case.gpu_entry for row in observations_of(made, entry)} == {mine}
