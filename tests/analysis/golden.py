"""Writes what is said of the golden run folders: `python -m tests.analysis.golden`.

Look at the difference: every line of it is something that readers are told otherwise than before,
and then ANALYSIS_VERSION of src/broadgauge/analysis/model.py changes, too.
"""

import json
from pathlib import Path
from typing import Any

from broadgauge.analysis.analyse import analyse
from broadgauge.analysis.model import ANALYSIS_VERSION
from broadgauge.results.summary import summarise_stored

RUNS = Path(__file__).parents[1] / "results/golden"
EXPECTED = Path(__file__).parent / "golden"


def said_of(name: str) -> dict[str, Any]:
    """The analysis of this golden folder; figures to 9 digits, which every machine agrees on."""
    analysis = analyse(summarise_stored(RUNS / name)).model_dump(mode="json")
    return {"analysis_version": ANALYSIS_VERSION, **_rounded(analysis)}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    for run in sorted(RUNS.glob("schema-*/")):
        text = json.dumps(said_of(run.name), indent=1, ensure_ascii=False)
        EXPECTED.mkdir(exist_ok=True)
        (EXPECTED / f"{run.name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
