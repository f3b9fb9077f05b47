"""What did iperf3 measure? Read from its JSON (`-J`), one test an object.

`end.sum_received` is what arrived, `end.sum_sent` what was handed to the kernel, in bit/s; of a
test in both directions (`--bidir`) the other direction stands beside it. Of UDP `end.sum` has the
lost packets. Source: esnet/iperf src/iperf_api.c of 3.12, and its own output.
"""

from broadgauge.importing.json_values import JsonObject
from broadgauge.importing.measured import (
    CommandMeasured,
    Facts,
    Figure,
    ImportedMeasurement,
    ShapeGiven,
    measured_command,
)
from broadgauge.specs.errors import InputError
from broadgauge.specs.records.record import ErrorKind, TrialError
from broadgauge.specs.units import show_size

_GBPS = 1e-9
_LOOPBACK = ("127.", "::1", "::ffff:127.")


def read_json(document: JsonObject, given: ShapeGiven) -> ImportedMeasurement:
    """One test, from the client's or the server's side. Raises InputError."""
    start, end = document.inside("start"), document.inside("end")
    failure = document.maybe_text("error") or _nothing_arrived(end)
    test = start.inside("test_start") if start.has("test_start") else None
    protocol = "TCP" if test is None else test.text("protocol")
    figures = _figures(end, protocol, has_failed=failure is not None)
    found = CommandMeasured(
        program="iperf3",
        name=f"iperf3-{protocol}",
        command=("iperf3", *_arguments(test)),
        nodes=given.nodes or _nodes(start),
        figures=figures,
        settings={} if test is None else _settings(test, end),
        others=_others(end),
    )
    error = None if failure is None else TrialError(kind=ErrorKind.REFUSED, message=failure)
    return measured_command(found, document.place.rstrip(": "), _facts(start, end), error)


def _nothing_arrived(end: JsonObject) -> str | None:
    """iperf3 itself reports no error then, and of UDP no lost packet: nobody counted any."""
    for key, way in (("sum_received", ""), ("sum_received_bidir_reverse", " on the way back")):
        if not end.has(key) or end.inside(key).maybe_number("bytes") != 0:
            continue
        sent = key.replace("received", "sent")
        sent_bytes = end.inside(sent).maybe_number("bytes") if end.has(sent) else None
        of_sent = "" if sent_bytes is None else f" of {show_size(int(sent_bytes))} sent"
        return f"nothing arrived{way}: 0 bytes{of_sent}; a firewall, or an MTU that a hop lacks?"
    return None


def _figures(end: JsonObject, protocol: str, *, has_failed: bool) -> tuple[Figure, ...]:
    figures = [_rate(end, "throughput_gbps", "sum_received", has_failed=has_failed)]
    if end.has("sum_received_bidir_reverse"):
        figures.append(
            _rate(end, "reverse_gbps", "sum_received_bidir_reverse", has_failed=has_failed)
        )
    if protocol == "UDP" and not has_failed:
        total = end.inside("sum")
        lost = total.number("lost_percent") if total.has("lost_percent") else None
        jitter_ms = total.maybe_number("jitter_ms")
        figures += [
            Figure(
                name="lost_ratio",
                key="end.sum.lost_percent",
                scale=0.01,
                value=None if lost is None else lost / 100,
                lower_is_better=True,
            ),
            Figure(
                name="jitter_s",
                key="end.sum.jitter_ms",
                scale=0.001,
                value=None if jitter_ms is None else jitter_ms / 1000,
                lower_is_better=True,
            ),
        ]
    trips = _round_trips_s(end)
    if trips:
        figures.append(
            Figure(
                name="mean_round_trip_s",
                key="end.streams.0.sender.mean_rtt",
                scale=1e-6,
                value=sum(trips) / len(trips),
                lower_is_better=True,
            )
        )
    return tuple(figures)


def _rate(end: JsonObject, name: str, key: str, *, has_failed: bool) -> Figure:
    where = f"end.{key}.bits_per_second"
    if has_failed:
        return Figure(name=name, key=where, scale=_GBPS, value=None, why_none="the test failed")
    bits_per_s = end.inside(key).number("bits_per_second")
    return Figure(name=name, key=where, scale=_GBPS, value=bits_per_s * _GBPS)


def _round_trips_s(end: JsonObject) -> list[float]:
    """Of each stream the mean of what the kernel said each second; senders alone know it."""
    if not end.has("streams"):
        return []
    senders = [each.inside("sender") for each in end.objects("streams") if each.has("sender")]
    return [each.number("mean_rtt") / 1e6 for each in senders if each.maybe_number("mean_rtt")]


def _others(end: JsonObject) -> dict[str, float]:
    if not end.has("sum_sent"):
        return {}
    retransmits = end.inside("sum_sent").maybe_number("retransmits")
    return {} if retransmits is None else {"retransmits_count": retransmits}


def _settings(test: JsonObject, end: JsonObject) -> dict[str, str]:
    settings = {"streams": str(test.whole("num_streams", least=1))}
    for key, word in (("blksize", "block_bytes"), ("target_bitrate", "target_bits_per_s")):
        if test.maybe_number(key):
            settings[word] = str(test.whole(key))
    if test.maybe_number("reverse"):
        settings["reverse"] = "yes"
    if end.has("sum_received_bidir_reverse"):
        settings["both_directions"] = "yes"
    congestion = end.maybe_text("sender_tcp_congestion")
    return settings if congestion is None else {**settings, "congestion_control": congestion}


def _arguments(test: JsonObject | None) -> tuple[str, ...]:
    """How it was called, as far as the file tells."""
    if test is None:
        return ()
    words = ["-P", str(test.whole("num_streams", least=1))]
    if test.maybe_number("duration"):
        words += ["-t", str(test.whole("duration"))]
    if test.text("protocol") == "UDP":
        words.append("-u")
    return tuple(words)


def _nodes(start: JsonObject) -> int:
    """Two machines, unless both ends have the same address or a loopback's."""
    for each in start.objects("connected") if start.has("connected") else []:
        local, remote = each.maybe_text("local_host"), each.maybe_text("remote_host")
        if remote is not None and (local == remote or remote.startswith(_LOOPBACK)):
            return 1
    return 2


def _facts(start: JsonObject, end: JsonObject) -> Facts:
    stamp = start.inside("timestamp") if start.has("timestamp") else None
    version = start.maybe_text("version")
    elapsed = end.inside("sum_sent").maybe_time_s("seconds") if end.has("sum_sent") else None
    return Facts(
        version=None if version is None else version.removeprefix("iperf "),
        kernel=_kernel(start.maybe_text("system_info")),
        started_unix_s=None if stamp is None else stamp.maybe_time_s("timesecs"),
        elapsed_s=elapsed,
    )


def _kernel(system_info: str | None) -> str | None:
    """`Linux host 6.8.0-1 #1 SMP … x86_64` → `6.8.0-1`."""
    words = (system_info or "").split()
    return words[2] if len(words) > 2 and words[0] == "Linux" else None


def refuse_stream(document: JsonObject) -> None:
    """Raises InputError for the lines of `--json-stream`, which have the figures in pieces."""
    if document.maybe_text("event") in ("start", "interval", "end", "error"):
        raise InputError(
            f"{document.place.rstrip(': ')}: lines of iperf3 --json-stream",
            hint="import what `iperf3 -J` prints: one object a test",
        )
