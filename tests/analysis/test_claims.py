"""Does a host-bound case stand beside a hypothesis's verdict, without changing it?"""

from tests.results import simulated_experiments as made

from broadgauge.analysis.analyse import analyse
from broadgauge.results.comparing.hypotheses import HypothesisVerdict
from broadgauge.results.summary import summarise_run
from broadgauge.specs.hypothesis import Hypothesis
from broadgauge.specs.records.record import LinkFacts

WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995)
CLAIM = Hypothesis(
    name="h",
    statement="twice as fast",
    cases={"network": "slow"},
    over={"network": "other"},
    at_most=0.6,
)


def test_a_host_bound_case_keeps_its_part_and_is_named() -> None:
    cases = [made.network_case(name) for name in ("other", "slow")]
    run = made.run_of(cases, [WIGGLE, WIGGLE])
    records = [
        r.model_copy(
            update={
                "link": LinkFacts(ceiling_gbps=1.5 if r.network == "slow" else 50.0),
                "metrics": r.metrics | {"network_share_ratio": 0.8},
            }
        )
        for r in run.records
    ]
    plan = run.plan.model_copy(update={"hypotheses": (CLAIM,)})
    again = summarise_run(
        folder=run.folder, plan=plan, records=records, experiment_yaml="", environments={}
    )
    (result,) = analyse(again).hypotheses
    assert result.verdict is HypothesisVerdict.REFUTED
    assert len(result.caveats) == 1
    assert result.caveats[0].startswith("train 2x1 slow is host-bound: ")
