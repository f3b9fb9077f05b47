"""What did fio measure? Read from its JSON (`--output-format=json`), one case a job.

Bandwidth is `bw_bytes`, latency `lat_ns` from submission to completion. Clones of one job
(`numjobs`) run at once: their rates add up, their mean latencies are weighted by operations.
Source: axboe/fio stat.c, add_ddir_status_json, of 3.33, and its own output.
"""

from collections.abc import Sequence

from broadgauge.importing.json_values import JsonObject
from broadgauge.importing.measured import (
    CommandMeasured,
    Facts,
    Figure,
    ImportedMeasurement,
    measured_command,
)
from broadgauge.specs.errors import InputError
from broadgauge.specs.records.record import ErrorKind, TrialError

_GBYTE = 1e-9
_NS = 1e-9
_P99 = "99.000000"
_OWN_OPTIONS = ("filename", "directory", "name", "write_bw_log", "write_lat_log")
"""Where it wrote, which is no setting that two runs must agree in."""
_MOST_ARGUMENTS = 40


def read_json(document: JsonObject) -> tuple[ImportedMeasurement, ...]:
    """Every job, clones of one together. Raises InputError."""
    version = document.text("fio version")
    started_s = document.maybe_time_s("timestamp")
    shared = document.inside("global options") if document.has("global options") else None
    clones: dict[tuple[str, int], list[JsonObject]] = {}
    for job in document.objects("jobs"):
        clones.setdefault((job.text("jobname"), job.whole("groupid")), []).append(job)
    if not clones:
        raise InputError(f"{document.place.rstrip(': ')}.jobs: there is no job")
    return tuple(
        _job(jobs, shared, Facts(version=version.removeprefix("fio-"), started_unix_s=started_s))
        for jobs in clones.values()
    )


def _job(
    jobs: Sequence[JsonObject], shared: JsonObject | None, facts: Facts
) -> ImportedMeasurement:
    first = jobs[0]
    place = first.place
    options = {**({} if shared is None else _options(shared)), **_own_options(first)}
    settings = {key: value for key, value in options.items() if key not in _OWN_OPTIONS}
    if len(jobs) > 1:
        settings["numjobs"] = str(len(jobs))
    directions = [way for way in ("read", "write", "trim") if _was_used(jobs, way)]
    codes = [job.whole("error") for job in jobs]
    if not directions and not any(codes):
        raise InputError(f"{place}: nothing was read or written", hint="did the job start?")
    figures = [figure for way in directions or ["read"] for figure in _figures(jobs, way)]
    found = CommandMeasured(
        program="fio",
        name=first.text("jobname"),
        command=("fio", *(_argument(key, value) for key, value in settings.items()))[
            :_MOST_ARGUMENTS
        ],
        nodes=1,
        figures=tuple(figures),
        settings=settings,
    )
    error = None
    if any(codes):
        code = next(filter(None, codes))
        error = TrialError(kind=ErrorKind.REFUSED, message=f"fio ended the job with error {code}")
    runtimes_s = [
        job.inside(way).maybe_time_s("runtime", per_s=1e3) for job in jobs for way in directions
    ]
    facts = Facts(
        version=facts.version,
        started_unix_s=facts.started_unix_s,
        elapsed_s=max(filter(None, runtimes_s), default=None),
    )
    return measured_command(found, place, facts, error)


def _argument(key: str, value: str) -> str:
    return f"--{key}={value}" if value else f"--{key}"


def _own_options(job: JsonObject) -> dict[str, str]:
    return _options(job.inside("job options")) if job.has("job options") else {}


def _options(found: JsonObject) -> dict[str, str]:
    return {key: found.maybe_text(key) or "" for key in found.values}


def _was_used(jobs: Sequence[JsonObject], way: str) -> bool:
    return any(job.has(way) and job.inside(way).number("io_bytes") > 0 for job in jobs)


def _figures(jobs: Sequence[JsonObject], way: str) -> tuple[Figure, ...]:
    sides = [job.inside(way) for job in jobs if job.has(way)]
    weights = [side.number("total_ios") for side in sides]
    total = sum(weights)
    latencies = [_latency_ns(side) for side in sides]
    mean_ns = (
        None
        if not total or None in latencies
        else sum(n * (mean or 0.0) for n, mean in zip(weights, latencies, strict=True)) / total
    )
    key = f"jobs.0.{way}"
    return (
        Figure(
            name=f"{way}_gbyte_per_s",
            key=f"{key}.bw_bytes",
            scale=_GBYTE,
            value=sum(_bandwidth(side) for side in sides) * _GBYTE,
        ),
        Figure(
            name=f"{way}_operations_per_s",
            key=f"{key}.iops",
            value=sum(side.number("iops") for side in sides),
        ),
        Figure(
            name=f"{way}_latency_s",
            key=f"{key}.lat_ns.mean",
            scale=_NS,
            value=None if mean_ns is None else mean_ns * _NS,
            lower_is_better=True,
        ),
        _p99(sides, way, key),
    )


def _bandwidth(side: JsonObject) -> float:
    """In byte/s; before 3.5 only KiB/s are there."""
    return side.number("bw_bytes") if side.has("bw_bytes") else side.number("bw") * 1024


def _latency_ns(side: JsonObject) -> float | None:
    """None: not kept (`disable_lat`), or before 3.0, which counts in microseconds."""
    return side.inside("lat_ns").number("mean") if side.has("lat_ns") else None


def _p99(sides: Sequence[JsonObject], way: str, key: str) -> Figure:
    """Of one job; of clones nobody can put percentiles together."""
    value, why = None, "percentiles of clones can't be put together"
    if len(sides) == 1:
        side, why = sides[0], "fio kept no percentiles"
        latency = side.inside("clat_ns") if side.has("clat_ns") else None
        if latency is not None and latency.has("percentile"):
            value_ns = latency.inside("percentile").maybe_number(_P99)
            value = None if value_ns is None else value_ns * _NS
    return Figure(
        name=f"{way}_latency_p99_s",
        key=f"{key}.clat_ns.percentile",
        scale=_NS,
        value=value,
        lower_is_better=True,
        why_none=why,
    )
