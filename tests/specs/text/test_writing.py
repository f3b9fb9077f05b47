"""Proves specs/text/writing.py: what is written is read back as the same experiment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.network import Network
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.workloads.workload import CollectivesWorkload, CommandMetric, CommandWorkload

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)


@given(
    description=TEXTS,
    value=st.one_of(TEXTS, st.sampled_from(["no", "null", "1_000", "0x10", "1e5", "~", "1:30"])),
    rate_gbps=st.one_of(st.none(), st.floats(min_value=1e-3, max_value=1e4)),
    launches=st.integers(1, 1000),
)
def test_writing_and_reading_are_inverse(
    description: str, value: str, rate_gbps: float | None, launches: int
) -> None:
    experiment = Experiment(
        name="x",
        description=description,
        networks=(Network(name="no", rate_gbps=rate_gbps, environment={"A": value}),),
        workloads=(
            CollectivesWorkload(kind="collectives", sizes=(1024,)),
            CommandWorkload(
                kind="command",
                command=("train.py", value or "x"),
                metrics=(CommandMetric(name="step_time_s", regex=r"took ([\d.]+)"),),
            ),
        ),
        launches=launches,
        environment={"B": value},
    )
    assert read_experiment(dump_experiment(experiment), "x.yaml") == experiment


@pytest.mark.parametrize("name", ["quickstart"])
def test_examples_survive_being_resolved(repository: object, name: str) -> None:
    from pathlib import Path

    assert isinstance(repository, Path)
    text = (repository / "examples" / f"{name}.yaml").read_text()
    experiment = read_experiment(text, name)
    assert read_experiment(dump_experiment(experiment), name) == experiment
