"""Makes the golden run folder of today's schema: `python -m tests.results.golden.make`.

It refuses to overwrite one: a golden folder is kept for ever, and a new schema version gets a
folder of its own. `schema-<n>.values.json` is what its readers must find; it was looked through
when it was made.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from tests.engine.fake_platform import (
    Failure,
    FakeClock,
    FakePlatform,
    Moment,
    Script,
    an_environment,
    services,
)
from tests.engine.making import COLLECTIVES, COMMAND, NETWORKS, TRAIN, a_plan

from broadgauge.engine.run import run
from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.folder.series import read_series
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.records.record import (
    SCHEMA_VERSION,
    Environment,
    ErrorKind,
    Finding,
    GpuFacts,
    GpuUse,
    Severity,
)

GOLDEN = Path(__file__).parent
YAML = "name: golden\nplatform: emulated\n"


def time_s(moment: Moment) -> float:
    """Known, and different for each launch, rank and step."""
    launch = int(moment.trial_id[1])
    return moment.ideal_s * (1 + 0.01 * launch + 0.001 * moment.rank + 0.0001 * moment.index)


def environment(request: LaunchRequest) -> Environment:
    return an_environment(
        nccl="2.27.5",
        cuda="12.8",
        driver="570.86",
        distribution="Debian GNU/Linux 12",
        cpu="a processor",
        gpus=(GpuFacts(name="NVIDIA H200", memory_bytes=150_754_820_096),),
        nics=("veth0: 10 Gbit/s",),
        git_commit="0123abc+",
        variables={"NCCL_X": request.cases[0].shape},
    )


SCRIPT = Script(
    time_s=time_s,
    environment=environment,
    failures={
        "b0.l2.t1": Failure(kind=ErrorKind.HUNG, message="rank 1 is silent", rank=1, num_blocks=1),
        "b1.l2.t0": Failure(kind=ErrorKind.REFUSED, message="no such file: train.py", rank=None),
    },
    gpus=(
        GpuUse(
            index=0,
            name="NVIDIA H200",
            samples_count=12,
            sm_clock_mhz=1980.0,
            power_watts=612.5,
            is_throttled=True,
            throttle_reasons=("SwThermalSlowdown",),
        ),
    ),
)


def make(path: Path) -> None:
    """One run with good, failed and timed-out trials of every workload, series and findings."""
    plan = a_plan(
        workloads=[TRAIN, {**COLLECTIVES, "dtypes": ["float32", "bfloat16"]}, COMMAND],
        networks=[*NETWORKS, {"name": "tuned", "mtu_bytes": 9000, "environment": {"GLOO_X": "1"}}],
        cluster={"shapes": ["1x1", "2x1"]},
    ).model_copy(update={"experiment_name": "golden"})
    clock = FakeClock()
    known = services(clock)
    finding = Finding(
        rule="golden",
        severity=Severity.WARNING,
        symptom="a symptom",
        evidence=("1 of 2",),
        cause="a cause",
        fix="a fix",
    )
    injected = type(known)(
        merger=known.merger, clock=clock, judge=lambda case, record, series: (finding,)
    )
    with RunFolder.create(
        path.parent / "making", plan=plan, experiment_yaml=YAML, started_unix_s=clock.unix_s()
    ) as folder:
        run(plan, FakePlatform(clock, SCRIPT), folder, injected)
    (folder.path / "lock").unlink()
    (folder.path / "logs").rmdir()
    folder.path.rename(path)
    shutil.rmtree(path.parent / "making")


def values(stored: StoredRun) -> dict[str, object]:
    """What a reader must find in it."""
    return {
        "experiment": stored.experiment_yaml,
        "seed": stored.plan.seed,
        "cases": {case.key: case.label for case in stored.plan.cases},
        "launches": [launch.launch_id for launch in stored.plan.launches],
        "environments": {
            name: [env.torch, env.gpus[0].name, env.variables]
            for name, env in stored.environments.items()
        },
        "records": {
            record.record_id: {
                "case": stored.plan.case(record.case_key).label,
                "launch": record.launch_id,
                "block": record.block,
                "position": record.position,
                "status": record.status.value,
                "error": None
                if record.error is None
                else [record.error.kind.value, record.error.message, record.error.rank],
                "metrics": record.metrics,
                "missing": record.missing,
                "busbw": [row.busbw_gbyte_per_s for row in record.collectives],
                "tx_bytes": [node.tx_bytes for node in record.nodes],
                "power_watts": [gpu.power_watts for gpu in record.gpus],
                "ceiling_gbps": record.link.ceiling_gbps if record.link else None,
                "environment": record.environment,
                "findings": [finding.rule for finding in record.findings],
                "series": {
                    name: np.sum(read_series(stored.folder, record, name)) for name in record.series
                },
            }
            for record in stored.records
        },
    }


if __name__ == "__main__":
    golden = GOLDEN / f"schema-{SCHEMA_VERSION}"
    if golden.exists():
        sys.exit(f"{golden} is there, and golden folders are kept for ever")
    make(golden)
    found = json.dumps(values(read_run(golden)), indent=1, sort_keys=True)
    (GOLDEN / f"{golden.name}.values.json").write_text(found + "\n")
