"""Do inputs that a coverage-guided search found (`make fuzz`) still do no harm?"""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
INPUTS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("fuzz_log_reader")


def test_each_input_is_read_and_judged(fuzz: ModuleType) -> None:
    assert len(INPUTS) > 100
    assert sum(path.stat().st_size for path in INPUTS) < 300_000
    judge = fuzz.Judge()
    for path in INPUTS:
        judge(path.read_bytes())


def test_a_slow_input_would_be_found(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = fuzz.Judge()
    monkeypatch.setattr(fuzz, "read", lambda data: sum(range(100_000)))
    monkeypatch.setattr(judge, "usual_s", 1e-6)
    monkeypatch.setattr(judge, "_measured", lambda: 1e-6)
    with pytest.raises(fuzz.SlowInputError):
        judge(b"1234")


def test_seeds_are_parts_of_real_logs(fuzz: ModuleType) -> None:
    seeds = list(fuzz.seeds())
    assert len(seeds) > 200
    assert all(0 < len(seed) <= fuzz.MOST_BYTES for seed in seeds)
    assert fuzz.steps_of(seeds[0]) - fuzz.steps_of(b"")
