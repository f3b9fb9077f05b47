"""How fast is what should stay fast? Medians of several runs, with their spread; no verdict.

And which tests take longest, as they were last run here (tests/times.py).
"""

import gzip
import itertools
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "tests/results/golden/schema-1"
TIMES = Path(__file__).parents[1] / ".pytest_cache/v/broadgauge/times"
LOGS = Path(__file__).parents[1] / "tests/doctor/machine/logs"
RUNS = 7
NUM_SLOWEST = 20


def cpu_s_of(command: list[str]) -> float:
    """CPU seconds, user and system, of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def wall_s_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(name: str, samples: list[float], unit: str) -> None:
    low, middle, high = min(samples), statistics.median(samples), max(samples)
    print(f"{name:<44} {middle:8.3f} {unit}  ({low:.3f} to {high:.3f}, n={len(samples)})")


def compare_ten_thousand_pairs() -> None:
    from broadgauge.results.statistics import LaunchPair, compare_paired

    pairs = [
        LaunchPair(
            a_values=[1.0 + 0.01 * (block % 7)],
            b_values=[1.1 + 0.01 * (block % 5)],
            a_middle_s=10.0 * block + 3.0 * (block % 2),
            b_middle_s=10.0 * block + 3.0 * ((block + 1) % 2),
        )
        for block in range(10_000)
    ]
    compare_paired(pairs)


def write_large_run(folder: Path, num_cases: int, num_launches: int) -> None:
    """The golden run's trials again and again, on as many networks as make so many cases."""
    from broadgauge.results.folder.reading import read_run
    from broadgauge.results.folder.record_line import record_line
    from broadgauge.specs.plan import PlannedLaunch, PlannedTrial

    golden = read_run(GOLDEN)
    good = {record.case_key: record for record in golden.records if record.status == "ok"}
    measured = [case for case in golden.plan.cases if case.key in good and case.link is not None]
    cases, launches, lines = [], [], []
    for index, case in zip(range(num_cases), itertools.cycle(measured)):
        network = case.link.model_copy(update={"name": f"n{index}", "rate_gbps": 1 + index / 100})
        cases.append((case.model_copy(update={"network": network}), good[case.key]))
    for block, (index, (case, record)) in itertools.product(range(num_launches), enumerate(cases)):
        launch_id = f"b{block}.l{index}"
        trial = PlannedTrial(trial_id=f"{launch_id}.t0", case_key=case.key, trial=0)
        launches.append(
            PlannedLaunch(launch_id=launch_id, block=block, trials=(trial,), expected_s=1)
        )
        facts = {
            "record_id": trial.trial_id,
            "case_key": case.key,
            "launch_id": launch_id,
            "block": block,
            "position": index,
            "series": {},
            "started_unix_s": 10.0 * len(launches),
            "ended_unix_s": 10.0 * len(launches) + 9,
        }
        lines.append(record_line(record.model_copy(update=facts))[0])
    plan = golden.plan.model_copy(
        update={"cases": tuple(case for case, _ in cases), "launches": tuple(launches)}
    )
    folder.mkdir()
    (folder / "plan.json").write_text(plan.model_dump_json())
    (folder / "records.jsonl").write_bytes(b"".join(lines))
    (folder / "experiment.yaml").write_text(golden.experiment_yaml)


def read_large_runs(broadgauge: list[str]) -> None:
    """10,000 trials, read again by each command."""
    with tempfile.TemporaryDirectory() as folder:
        for num_cases, num_launches in ((20, 500), (200, 50)):
            path = Path(folder) / f"{num_cases}x{num_launches}"
            write_large_run(path, num_cases, num_launches)
            page = [*broadgauge, "report", str(path)]
            pages_s = [cpu_s_of(page) for _ in range(RUNS)]
            show(f"report of {num_cases} cases x {num_launches} launches, CPU", pages_s, "s")
            command = [*broadgauge, "show", str(path), "--details"]
            name = f"show --details of {num_cases} cases x {num_launches} launches"
            show(f"{name}, CPU", [cpu_s_of(command) for _ in range(RUNS)], "s")
            walls_s = [wall_s_of(lambda command=command: cpu_s_of(command)) for _ in range(RUNS)]
            show(f"{name}, wall", walls_s, "s")


def sweep_of_predictions(number: int) -> list[Any]:
    """Llama 3 8B under every strategy, GPU and number of nodes, at many link rates."""
    from broadgauge.predict.case import Fabric, ModelShape, TrainingCase

    llama = ModelShape(
        name="llama-3-8b",
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        ffn_hidden=14336,
        gated_mlp=True,
        vocabulary=128256,
        params=8.03e9,
        active_params=8.03e9,
    )
    settings = itertools.product(
        ("fsdp", "hsdp", "ddp", "megatron"), (1, 2, 4, 8, 64), (1, 2, 4), ("h100-sxm", "l40s")
    )
    cases = []
    for index, (strategy, nodes, micro_batch, gpu) in zip(range(number), itertools.cycle(settings)):
        is_megatron = strategy == "megatron"
        stages = nodes if is_megatron and nodes in (4, 8) else 1
        data = nodes * 8 // stages // (8 if is_megatron else 1)
        cases.append(
            TrainingCase(
                model=llama,
                gpu=gpu,
                nodes=nodes,
                gpus_per_node=8,
                fabric=Fabric(transport="roce", node_gbps=25.0 + index % 977),
                strategy=strategy,
                data_parallel=data,
                tensor_parallel=8 if is_megatron else 1,
                pipeline_parallel=stages,
                seq_len=4096,
                micro_batch=micro_batch,
                global_batch=micro_batch * data * (64 if stages > 1 else 2),
            )
        )
    return cases


def show_predictions() -> None:
    """CPU time, of one core: other work on this machine doesn't count."""
    from broadgauge.predict.predictor import predict
    from broadgauge.predict.timeline.trace import simulate

    def cpu_s_of_call(work: Callable[[], object]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    many = sweep_of_predictions(100_000)
    predict(many[:100])
    show("prediction of 100,000 cases, CPU", [cpu_s_of_call(lambda: predict(many))], "s")
    few = many[: len(many) // 1000]
    samples = [cpu_s_of_call(lambda: predict(few)) * 1e3 / len(few) for _ in range(RUNS)]
    show("a case of a sweep of 100, CPU", samples, "ms")
    plain = [
        cpu_s_of_call(lambda each=each: simulate(each)) * 1e3 for each in few[:: len(few) // 20]
    ]
    show("a case by the plain event simulation, CPU", plain, "ms")


def training_output(nccl: list[bytes], share: float, num_lines: int) -> bytes:
    """What two ranks print: steps, and in between NCCL's lines, `share` of all."""
    lines, said = [], itertools.cycle(nccl)
    for step in range(num_lines):
        lines.append(
            b"[rank%d]: step %6d  loss %.4f  grad_norm %.3f  lr 3.0e-04  tokens/s %d  mfu 0.412"
            % (step % 2, step, 2 + step % 977 / 977, 1 + step % 7 / 7, 81_000 + step % 991)
        )
        if int((step + 1) * share / (1 - share)) > int(step * share / (1 - share)):
            lines.append(next(said))
    return b"\n".join(lines)


def show_log_reading() -> None:
    """MB of log a second of CPU time, with what is concluded. Logs of two GPUs, said again and
    again with other channels, so that few lines are alike."""
    from broadgauge.doctor.log.findings import log_findings
    from broadgauge.doctor.log.reading import read_text

    def unlike(name: str, num_bytes: int) -> list[bytes]:
        lines = gzip.decompress((LOGS / f"{name}.log.gz").read_bytes()).splitlines()
        several = -(-num_bytes // sum(map(len, lines)))
        return [
            line.replace(b"Channel 0", b"Channel %d" % (10 + number)).replace(
                b"0x", b"0x%x" % number
            )
            for number in range(several)
            for line in lines
        ]

    nccl = unlike("2.28.9-nvlink", 20_000_000)
    logs = {
        "training output, 5 % NCCL lines": training_output(nccl, 0.05, 500_000),
        "NCCL lines only": b"\n".join(nccl),
        "errors of a dead peer": b"\n".join(unlike("2.21.5-dead-peer", 20_000_000)),
    }
    for name, log in logs.items():

        def rate(log: bytes = log) -> float:
            start = time.process_time()
            log_findings(read_text(log))
            return len(log) / 1e6 / (time.process_time() - start)

        show(f"doctor reads {name}", [rate() for _ in range(RUNS)], "MB/s")


def show_slowest_tests() -> None:
    """Core time of the last run of each, with all that it started and the fixtures it began."""
    if not TIMES.is_file():
        print("slowest tests: none was run here yet: make test, make test-slow")
        return
    times = json.loads(TIMES.read_text())
    print(f"the {NUM_SLOWEST} of {len(times)} tests that took most core time when they last ran:")
    print(f"{'core':>9}{'wall':>9}  {'on':<12}test")
    slowest = sorted(times, key=lambda name: -float(times[name]["core_s"]))[:NUM_SLOWEST]
    for name in slowest:
        day = time.strftime("%Y-%m-%d", time.gmtime(times[name]["ended_unix_s"]))
        print(f"{times[name]['core_s']:>7.1f} s{times[name]['wall_s']:>7.1f} s  {day:<12}{name}")


def main() -> None:
    broadgauge = [sys.executable, "-m", "broadgauge"]
    show("broadgauge --help, CPU", [cpu_s_of([*broadgauge, "--help"]) for _ in range(RUNS)], "s")
    dry = [*broadgauge, "run", "quickstart", "--dry-run"]
    show("broadgauge run quickstart --dry-run, CPU", [cpu_s_of(dry) for _ in range(RUNS)], "s")
    with tempfile.TemporaryDirectory() as folder:
        run = shutil.copytree(GOLDEN, f"{folder}/run")
        page = [*broadgauge, "report", run, "--output", f"{folder}/report.html"]
        show("report of the golden run, CPU", [cpu_s_of(page) for _ in range(RUNS)], "s")
    read_large_runs(broadgauge)
    show(
        "comparison of 10,000 interleaved pairs",
        [wall_s_of(compare_ten_thousand_pairs) for _ in range(RUNS)],
        "s",
    )
    show_predictions()
    show_log_reading()
    show_slowest_tests()


if __name__ == "__main__":
    main()
