"""Which lines does a new kind of workload add outside of its own modules? Here for a toy.

docs/architecture.md tells the same list. By the file below src/broadgauge: a line that is there,
and what stands in its place then.
"""

from collections.abc import Iterable
from pathlib import Path

END = "        case _:\n"
Lines = dict[str, str]


def _registry(room: str, *, module: str, made: str, kinds: str = "kinds.") -> Lines:
    """A room's registry: the import of the kind's module there, and its case."""
    before = f"from broadgauge.{room}.{kinds}training import "
    return {
        before: f"from broadgauge.{room}.{kinds}toy import {module}\n"
        f"from broadgauge.specs.workloads.toy import ToyWorkload\n{before}",
        END: f"        case ToyWorkload():\n            return {made}\n{END}",
    }


REGISTRIES: dict[str, Lines] = {
    "specs/workloads/workload.py": {
        "from broadgauge.specs.workloads.training import ": "from broadgauge.specs.workloads.toy "
        "import ToyWorkload\nfrom broadgauge.specs.workloads.training import ",
        "| CommandWorkload\n": "| CommandWorkload | ToyWorkload\n",
        '    "TrainWorkload",\n': '    "ToyWorkload",\n    "TrainWorkload",\n',
    },
    "messages/tasks.py": {
        "from broadgauge.messages.vocabulary import (\n": "from broadgauge.messages.toy import "
        "ToyTask\nfrom broadgauge.messages.vocabulary import (\n",
        "Task = CollectivesTask | TrainTask | StorageTask | CommandTask\n": "Task = "
        "CollectivesTask | TrainTask | StorageTask | CommandTask | ToyTask\n",
    },
    "messages/rank.py": {
        "from broadgauge.messages.vocabulary import ": "from broadgauge.messages.toy import "
        "NapBlock\nfrom broadgauge.messages.vocabulary import ",
        " | FileAccess | CommandSamples\n": " | FileAccess | CommandSamples | NapBlock\n",
    },
    "specs/workloads/tasks.py": {
        "from broadgauge.specs.case import Case\n": "from broadgauge.messages.toy import ToyTask\n"
        "from broadgauge.specs.case import Case\n"
        "from broadgauge.specs.workloads.toy import ToyWorkload\n",
        END: "        case ToyWorkload() as toy:\n            return ToyTask(naps=toy.naps)\n"
        f"{END}",
    },
    "probes/worker.py": {
        "from broadgauge.messages.tasks import ": "from broadgauge.messages.toy import ToyTask\n"
        "from broadgauge.messages.tasks import ",
        "        case CommandTask():\n": "        case CommandTask() | ToyTask():\n",
    },
    "specs/workloads/metrics.py": {
        '    Metric(\n        name="step_time_s",\n': "    Metric(\n"
        '        name="nap_time_s", direction="lower", meaning="the longest nap of any rank"\n'
        "    ),\n"
        '    Metric(\n        name="step_time_s",\n',
    },
    "engine/kinds/registry.py": _registry(
        "engine", module="ToyInEngine", made="ToyInEngine(workload)"
    ),
    "merging/merge.py": _registry(
        "merging",
        module="merge_toy",
        made="merge_toy(case, ranks, outcome.marks)",
        kinds="",
    ),
    "results/kinds/registry.py": _registry("results", module="ToyInResults", made="ToyInResults()"),
    "predict/kinds.py": {
        "        case CollectivesWorkload() | StorageWorkload():\n": "        case "
        "CollectivesWorkload() | StorageWorkload() | ToyWorkload():\n",
        "    TrainWorkload,\n": "    ToyWorkload,\n    TrainWorkload,\n",
    },
    "advise/kinds/registry.py": _registry("advise", module="ToyInAdvise", made="ToyInAdvise()"),
    "advise/verdicts/verdict.py": {
        '    UNKNOWN = "unknown"\n': '    TOY = "clock-bound"\n    UNKNOWN = "unknown"\n'
    },
    "running/kinds/registry.py": {
        END: f"        case ToyWorkload():\n            return KindInRunning()\n{END}",
        "    TrainWorkload,\n": "    ToyWorkload,\n    TrainWorkload,\n",
    },
    "report/kinds/registry.py": _registry("report", module="ToyInReport", made="ToyInReport()"),
    "report/terminal/closing.py": {
        '    Bound.UNKNOWN: "bold",\n': '    Bound.TOY: "bold blue",\n    Bound.UNKNOWN: "bold",\n'
    },
    "report/assets/report.css": {
        "\n.supported { ": "\n.badge.clock-bound { color: #2255aa; }\n.supported { "
    },
}


def add_lines(package: Path, names: Iterable[str] = tuple(REGISTRIES)) -> None:
    """Adds them to a copy of the package. Fails where a line is not there, or stands twice."""
    for name in names:
        text = (package / name).read_text()
        for old, new in REGISTRIES[name].items():
            assert text.count(old) == 1, f"{name}: {text.count(old)} times {old!r}"
            text = text.replace(old, new)
        (package / name).write_text(text)
