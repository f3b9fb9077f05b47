"""The made-up run that report tests look at."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from broadgauge.results.model import RunSummary


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The module tests/report/sample_run.py."""
    path = Path(__file__).parent / "sample_run.py"
    spec = importlib.util.spec_from_file_location("broadgauge_sample_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def run(samples: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return samples.sample_run(tmp_path_factory.mktemp("run"))
