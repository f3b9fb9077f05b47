"""A table's rows through the predictor: nothing lost, nothing scored with its own constants."""

from dataclasses import replace

import pytest
from tests.predict.making_tables import table_of

from broadgauge.predict.facts.knowledge import default_knowledge, prior_knowledge
from broadgauge.predict.scoring.validation import score_sheet, validate
from broadgauge.specs.errors import InputError

ROWS = [
    {"id": f"b{batch}", "micro_batch": str(batch), "global_batch": str(16 * batch)}
    for batch in (1, 2, 4, 8)
]


def test_every_row_is_scored_or_calibrates_or_is_listed() -> None:
    table = table_of(*ROWS, {"id": "broken", "step_time_s": "soon"})
    for calibrate in ("none", "system", "system-network"):
        found = validate(table, calibrate=calibrate, num_points=2)  # type: ignore[arg-type]
        ids = [each.row.id for each in found.scored]
        ids += [row.id for row in found.calibration] + [each.id for each in found.unread]
        assert sorted(ids) == ["b1", "b2", "b4", "b8", "broken"]


def test_constants_fitted_on_a_source_are_refused_for_it() -> None:
    known = replace(prior_knowledge(), fitted_on=("somebody",))
    with pytest.raises(InputError, match="the constants are fitted on 'somebody'"):
        validate(table_of(*ROWS), knowledge=known)
    assert validate(table_of({"source": "somebody else"}), knowledge=known).scored


def test_a_fitted_source_is_scored_with_the_constants_that_were_fitted_without_it() -> None:
    known = default_knowledge()
    if not known.fitted_on:
        pytest.skip("no constants are fitted")
    source = known.fitted_on[0]
    table = table_of(*({**row, "source": source} for row in ROWS))
    left_out = validate(table, knowledge=known.without(source))
    assert validate(table).scored == left_out.scored


def test_a_row_that_the_predictor_refuses_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from broadgauge.predict.scoring import validation

    real = validation.predict

    def refusing(cases, knowledge=None):  # type: ignore[no-untyped-def]
        if any(case.name == "b4" for case in cases):
            raise InputError("no such training", hint="another")
        return real(cases, knowledge)

    monkeypatch.setattr(validation, "predict", refusing)
    found = validate(table_of(*ROWS))
    assert [each.row.id for each in found.scored] == ["b1", "b2", "b8"]
    assert [(each.id, each.reason, each.stage) for each in found.unread] == [
        ("b4", "no such training (another)", "prediction")
    ]


def test_calibration_brings_a_system_nearer_to_its_own_rows() -> None:
    plain = validate(table_of(*ROWS)).scored
    slow = [
        {**row, "step_time_s": repr(1.3 * each.step_time_s.value)}
        for row, each in zip(ROWS, plain, strict=True)
    ]
    before = score_sheet(validate(table_of(*slow)).scored).overall.mape
    after = score_sheet(validate(table_of(*slow), calibrate="system").scored).overall.mape
    assert before is not None
    assert after is not None
    assert after < before / 2


def test_a_refused_row_calibrates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from broadgauge.predict.scoring import validation

    real = validation.predict

    def refusing(cases, knowledge=None):  # type: ignore[no-untyped-def]
        if any(case.name in ("b1", "b8") for case in cases):
            raise InputError("no such training")
        return real(cases, knowledge)

    monkeypatch.setattr(validation, "predict", refusing)
    found = validate(table_of(*ROWS), calibrate="system", num_points=1)
    assert {row.id for row in found.calibration} < {"b2", "b4"}
    assert [each.id for each in found.unread] == ["b1", "b8"]
