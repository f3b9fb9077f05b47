"""What do the ranks of the fake platform say in one trial? The frames and counters of real ones."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.engine.fake_script import COMPUTE_S, LATENCY_S, Failure, FakeClock, Moment, Script

from broadgauge.engine.transfers import transfer_s
from broadgauge.messages.codec import encode
from broadgauge.messages.rank import (
    CollectiveBlock,
    CommandSamples,
    Done,
    PhaseBegins,
    StepsBlock,
    TrainSummary,
)
from broadgauge.messages.vocabulary import StepMode
from broadgauge.specs.launching import Mark, NodeCounters, TrialOutcome, TrialProgress, TrialRequest
from broadgauge.specs.records.record import ErrorKind, LinkFacts, Phase, Status, TrialError
from broadgauge.specs.workloads.workload import (
    DATA_TYPE_BYTES,
    CollectivesWorkload,
    CommandWorkload,
    TrainWorkload,
)


class ScriptedError(Exception):
    """The trial fails here."""


class FakeRanks:
    """The ranks of one trial and what they say."""

    def __init__(
        self,
        clock: FakeClock,
        script: Script,
        request: TrialRequest,
        progress: TrialProgress,
        failure: Failure | None,
    ) -> None:
        self.clock, self.script = clock, script
        self.case, self.trial_id = request.case, request.trial_id
        self.progress, self.failure = progress, failure
        self.messages: list[list[Mapping[str, Any]]] = [[] for _ in range(self.case.world_size)]
        self.marks: list[Mark] = []
        self.sent_bytes = 0.0
        self.busy_s = 0.0
        self.num_blocks = 0

    def outcome(self) -> TrialOutcome:
        started_s = self.clock.unix_s()
        try:
            self._phase(Phase.WARM_UP)
            self._phase(Phase.MEASURE)
            self._measure()
            self._say(lambda rank: Done(trial_id=self.trial_id))
        except ScriptedError:
            pass
        error, status = None, Status.OK
        if self.failure is not None:
            self.clock.advance(self.failure.takes_s)
            error = TrialError(
                kind=self.failure.kind,
                message=self.failure.message,
                phase=self.failure.phase,
                rank=self.failure.rank,
                frame=self.failure.frame,
                last_lines=self.failure.last_lines,
            )
            status = Status.TIMEOUT if error.kind is ErrorKind.HUNG else Status.FAILED
        return TrialOutcome(
            status=status,
            started_unix_s=started_s,
            ended_unix_s=self.clock.unix_s(),
            error=error,
            messages=tuple(tuple(spoken) for spoken in self.messages),
            marks=tuple(self.marks),
            gpus=self.script.gpus,
            link=LinkFacts(ceiling_gbps=20.0, round_trip_s=5e-5) if self.case.network else None,
        )

    def _measure(self) -> None:
        match self.case.workload:
            case TrainWorkload() as train:
                self._train(train)
            case CollectivesWorkload() as collectives:
                self._collectives(collectives)
            case CommandWorkload() as command:
                self._command(command)

    def _train(self, train: TrainWorkload) -> None:
        has_off = train.communication_off and self.case.world_size > 1
        gradient_bytes = 4 * train.model.parameters
        transfer = transfer_s(self.case, "all_reduce", gradient_bytes)
        for block in range(-(-train.steps // train.block_steps)):
            num_steps = min(train.block_steps, train.steps - block * train.block_steps)
            for is_on in (True, False) if has_off else (True,):
                label = f"{'on' if is_on else 'off'}.{block}"
                ideal_s = COMPUTE_S + (transfer if is_on else 0.0)
                wire_bytes = self._wire_bytes(gradient_bytes) if is_on else 0.0
                times = self._block(label, num_steps, ideal_s, wire_bytes)
                losses = tuple(5.0 / (1 + block * train.block_steps + n) for n in range(num_steps))
                self._say(
                    lambda rank, label=label, is_on=is_on, times=times, losses=losses: StepsBlock(
                        trial_id=self.trial_id,
                        label=label,
                        mode=StepMode.TIMED if is_on else StepMode.COMMUNICATION_OFF,
                        seconds=times[rank],
                        losses=losses,
                    )
                )
                self._mark(f"{label}:end")
        self._say(
            lambda rank: TrainSummary(
                trial_id=self.trial_id,
                parameters=train.model.parameters,
                tokens_per_step=train.batch_per_rank * train.model.seq_len,
                sequences_per_step=train.batch_per_rank,
                gradient_bytes=gradient_bytes,
                flops_per_step=train.model.flops_per_token * train.model.seq_len,
                peak_memory_bytes=300_000_000 + rank,
                data="scripted",
                parameter_checksum=1.5,
            )
        )

    def _collectives(self, collectives: CollectivesWorkload) -> None:
        for dtype in collectives.dtypes:
            for op in collectives.ops:
                for size in collectives.sizes_bytes():
                    step = DATA_TYPE_BYTES[dtype] * self.case.world_size
                    self._collective(collectives, op, dtype, max(step, size // step * step))

    def _collective(
        self, collectives: CollectivesWorkload, op: str, dtype: str, size_bytes: int
    ) -> None:
        label = f"{op}/{dtype}/{size_bytes}"
        ideal_s = LATENCY_S + transfer_s(self.case, op, size_bytes)
        wire_bytes = self._wire_bytes(size_bytes) * (1.0 if op == "all_reduce" else 0.5)
        times = self._block(label, collectives.min_iterations, ideal_s, wire_bytes)
        self._say(
            lambda rank: CollectiveBlock(
                trial_id=self.trial_id,
                label=label,
                op=op,
                dtype=dtype,
                size_bytes=size_bytes,
                seconds=times[rank],
                is_correct=True if collectives.check else None,
            )
        )
        self._mark(f"{label}:end")

    def _command(self, command: CommandWorkload) -> None:
        self._block("command", 1, COMPUTE_S, 0.0)
        self._mark("command:end")
        samples = {
            metric.name: tuple(self._time(metric.name, n, 0, COMPUTE_S) for n in range(3))
            for metric in command.metrics
        }
        self._say(lambda rank: CommandSamples(trial_id=self.trial_id, samples=samples, exit_code=0))

    def _block(
        self, label: str, iterations: int, ideal_s: float, wire_bytes: float
    ) -> list[tuple[float, ...]]:
        """Times by rank; the clock and the counters move on. Ends in the scripted failure."""
        self._mark(f"{label}:begin")
        self.script.on_step(f"{self.trial_id} {label}")
        if self.failure is not None and self.num_blocks >= self.failure.num_blocks:
            raise ScriptedError
        self.num_blocks += 1
        times = [
            tuple(self._time(label, n, rank, ideal_s) for n in range(iterations))
            for rank in range(self.case.world_size)
        ]
        elapsed_s = sum(max(step) for step in zip(*times, strict=True))
        self.clock.advance(elapsed_s)
        self.busy_s += elapsed_s
        self.sent_bytes += iterations * wire_bytes
        return times

    def _time(self, label: str, index: int, rank: int, ideal_s: float) -> float:
        return self.script.time_s(
            Moment(
                case=self.case,
                trial_id=self.trial_id,
                label=label,
                index=index,
                rank=rank,
                ideal_s=ideal_s,
            )
        )

    def _wire_bytes(self, size_bytes: int) -> float:
        """Of a ring all_reduce, with 5 % of headers."""
        ranks = self.case.world_size
        return 1.05 * 2 * (ranks - 1) / ranks * size_bytes

    def _phase(self, phase: Phase) -> None:
        self.progress(phase, self.case.label)
        self._say(lambda rank: PhaseBegins(trial_id=self.trial_id, phase=phase))

    def _say(self, message: Callable[[int], Any]) -> None:
        for rank, spoken in enumerate(self.messages):
            spoken.append(encode(message(rank)))

    def _mark(self, label: str) -> None:
        on_link = self.case.network is not None
        sent = int(self.sent_bytes) if on_link else None
        counters = NodeCounters(
            tx_bytes=sent,
            rx_bytes=sent,
            drops_count=0 if on_link else None,
            retransmits_count=0 if on_link else None,
            cores_count=1,
            cpu_user_s=0.7 * self.busy_s,
            cpu_system_s=0.1 * self.busy_s,
            cpu_softirq_s=0.02 * self.busy_s,
        )
        nodes = (counters,) * self.case.nodes
        self.marks.append(Mark(label=label, time_s=self.clock.now_s, nodes=nodes))
