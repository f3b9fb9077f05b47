"""What did nccl-tests write with `-J`? One program's results an object.

Without MPI it names one device of many: ranks are processes x threads x GPUs of each.
Source: NVIDIA/nccl-tests src/util.cu of 2.17 to 2.19, JSON_FILE_VERSION 3.
"""

from broadgauge.importing.json_values import JsonObject
from broadgauge.importing.measured import (
    CollectiveMeasured,
    Facts,
    ImportedMeasurement,
    ShapeGiven,
    SizeMeasured,
    measured_collective,
)
from broadgauge.importing.nccl_tests import (
    NO_LATENCY,
    TYPES,
    Alike,
    RankLine,
    alike,
    nodes_and_ranks,
    op_of,
    size_measured,
    unusual,
)
from broadgauge.importing.nccl_tests_text import program_in
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.probes.nccl_tests.output import nccl_version
from broadgauge.specs.errors import InputError


def read_json(
    document: JsonObject, given: ShapeGiven
) -> tuple[tuple[ImportedMeasurement, ...], list[str]]:
    """Its measurements, and what was passed over. Raises InputError."""
    place = document.place.rstrip(": ")
    config = document.inside("config")
    program = _program(document)
    op = op_of(program, given, place)
    if op is None:
        return (), [f"{place}: {program}_perf is no collective that Broadgauge knows"]
    ranks = _ranks(config)
    nodes, num_ranks = nodes_and_ranks(ranks, given, place)
    settings = unusual(_whole(config, "aggregated_iterations"), _whole(config, "graph"), ranks)
    kinds: dict[Alike, list[SizeMeasured]] = {}
    for result in document.objects("results"):
        if result.whole("size"):  # 0: rounded down to nothing
            size = _size(result, config, (op, num_ranks))
            kinds.setdefault(_kind(result), []).append(size)
    if not kinds:
        raise InputError(f"{place}.results: no size was measured", hint="did the test end?")
    code = _whole(document, "nccl_version")
    facts = Facts(
        nccl=None if code is None else nccl_version(code),
        gpus=tuple(rank.gpu for rank in ranks if rank.gpu),
    )
    found = (
        CollectiveMeasured(
            program="nccl-tests",
            op=op,
            nodes=nodes,
            ranks=num_ranks,
            dtype=kind.dtype,
            sizes=sizes,
            settings={**settings, **dict(kind.settings)},
            warm_up_iterations=_whole(config, "warmup_iters"),
            num_wrong=_num_wrong(document),
            no_latency=NO_LATENCY,
        )
        for kind, sizes in kinds.items()
    )
    return tuple(measured_collective(each, place, facts) for each in found), []


def _program(document: JsonObject) -> str | None:
    arguments = document.values.get("args")
    return program_in(" ".join(map(str, arguments))) if isinstance(arguments, list) else None


def _whole(values: JsonObject, key: str) -> int | None:
    """None: this version does not say it."""
    return values.whole(key) if values.has(key) else None


def _num_wrong(document: JsonObject) -> int:
    if not document.has("out_of_bounds"):
        return 0
    return document.inside("out_of_bounds").whole("count")


def _ranks(config: JsonObject) -> list[RankLine]:
    devices = config.objects("devices")
    per_process = config.whole("nthreads", least=1) * config.whole("ngpus", least=1)
    if per_process > MOST_RANKS_PER_PROCESS:
        config.refuse("ngpus", config.values["ngpus"], "a number of GPUs")
    return [
        RankLine(
            host=device.text("hostname"),
            group=device.whole("group"),
            gpu=device.maybe_text("device_info") or "",
        )
        for device in devices
        for _ in range(per_process)
    ]


MOST_RANKS_PER_PROCESS = 1024


def _kind(result: JsonObject) -> Alike:
    if result.text("type") not in TYPES:
        result.refuse("type", result.values["type"], "a type of NCCL's")
    return alike(
        result.text("type"),
        result.maybe_text("redop"),
        (result.maybe_text("root") or "-1").strip(),
        is_out_of_place=result.has("out_of_place"),
    )


def _size(result: JsonObject, config: JsonObject, ring: tuple[CollectiveOp, int]) -> SizeMeasured:
    bodies = [result.inside(key) for key in ("out_of_place", "in_place") if result.has(key)]
    if not bodies:
        result.refuse("out_of_place", None, "an object")
    body = bodies[0]
    if body.has("cpu_time"):
        message = "times of the CPU (`-C 1`), not of the collective"
        raise InputError(f"{body.place}: {message}", hint="run it without -C")
    counts = [each.maybe_number("nwrong") for each in bodies]
    is_own = result.has("actual_iterations")
    iterations = (result if is_own else config).whole(
        "actual_iterations" if is_own else "iterations", least=1
    )
    return size_measured(
        size_bytes=result.whole("size"),
        time_us=body.number("time"),
        busbw=body.number("bus_bw"),
        wrong=[count for count in counts if count is not None],
        is_checked=counts[0] is not None,
        iterations=iterations,
        ring=ring,
        place=result.place,
    )
