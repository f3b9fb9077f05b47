"""What does the supervisor do all its life? One thread, one selector, nothing it waits for alone.

It has the links measured by children beside it, starts the ranks, passes on what they say, reads
the counters when all wait at a mark, and ends them: politely when told to, by force when one fails,
is silent too long, or the leader is gone.
"""

import os
import select
import selectors
import signal
import time

from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.supervisor.channel import Inlet, Outlet
from broadgauge.agent.supervisor.descendants import descendants, parent_and_state, reap_all
from broadgauge.agent.supervisor.ending import Ending, Stage
from broadgauge.agent.supervisor.launch_nodes import LaunchNodes, make_nodes
from broadgauge.agent.supervisor.link_probes import probe_link
from broadgauge.agent.supervisor.marks import OpenMark
from broadgauge.agent.supervisor.measuring import LinkMeasuring
from broadgauge.agent.supervisor.programs import Folders
from broadgauge.agent.supervisor.rank_process import RankProcess, RankStartError, start_rank
from broadgauge.agent.supervisor.watch import Expiry, Watch
from broadgauge.messages import agent as protocol
from broadgauge.messages.codec import JsonObject
from broadgauge.messages.counters import LinkFacts
from broadgauge.messages.found_links import CallOnLink, ListenOnLink
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.preflight import CallOthers, ClosePreflight, OpenPreflight
from broadgauge.messages.rank import COUNTED_STEPS, Command, EndCommand, ReleaseCommand
from broadgauge.messages.vocabulary import ErrorKind, Phase, assert_never
from broadgauge.messages.waiting_limits import waiting_limit_s

ALIVE_EVERY_S = 1.0
_LAST_EVENTS_S = waiting_limit_s(5.0)
"""For the leader to take them."""
MAX_LOG_BYTES = 2**30
"""A rank that writes more would fill the disk that the records are written to."""
_GARBAGE_NOTE_BYTES = 500


class LeaderIsGone(Exception):  # noqa: N818  no error: the signal to leave
    """The leader or the guard has ended; nobody is left to work for."""


class Supervisor:
    """All ranks of one launch on this machine."""

    def __init__(self, order: LaunchOrder, folders: Folders, control_fd: int) -> None:
        self._order = order
        self._folders = folders
        self._control_fd = control_fd
        self._ranks: list[RankProcess] = []
        self._ending = Ending(ranks=self._ranks, teardown_s=order.limits.teardown_s)
        self._mark: OpenMark | None = None

    def run(self, guard_lives: int) -> int:
        """Supervise until no rank or no leader is left; gives the exit status."""
        self._selector = selectors.DefaultSelector()
        self._measuring = LinkMeasuring(self._selector)
        self._orders, self._events = Inlet(self._control_fd), Outlet(self._control_fd)
        self._guard_lives = guard_lives
        self._watch_descriptors()
        self._alive_due_s = time.monotonic() + ALIVE_EVERY_S
        self._watch = Watch.of((), self._order.limits, time.monotonic())
        try:
            self._nodes: LaunchNodes = make_nodes(self._order)
            self._measuring.begin(self._nodes.reshape(self._order.link), self._start_ranks)
            while self._measuring.is_under_way or not self._ending.is_over:
                self._turn()
            self._nodes.close()
            for rank in self._ranks:
                if rank.is_running:
                    self._say(protocol.RankLeft(rank=rank.plan.rank))
            self._say(protocol.Ended())
            self._drain_events()
        except EmulationError as error:
            return self._refuse(f"{error.step}: {error.detail}", error.hint)
        except RankStartError as error:
            return self._refuse(str(error), error.hint)
        except LeaderIsGone:
            return 0
        return 0

    def _refuse(self, message: str, hint: str | None) -> int:
        self._say(protocol.Refused(message=message, hint=hint))
        self._drain_events()
        return 1

    def _watch_descriptors(self) -> None:
        wake_in, wake_out = os.pipe()
        os.set_blocking(wake_in, False)
        os.set_blocking(wake_out, False)
        signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake = wake_in
        for fd in (wake_in, self._control_fd, self._guard_lives):
            self._selector.register(fd, selectors.EVENT_READ)

    def _start_ranks(self, _facts: LinkFacts | None) -> None:
        now_s = time.monotonic()
        order = self._order
        self._watch = Watch.of([plan.rank for plan in order.ranks], order.limits, now_s)
        for plan in order.ranks:
            rank = start_rank(order, plan, self._folders, self._nodes.entry_to(plan.node))
            self._ranks.append(rank)
            self._selector.register(rank.results.fd, selectors.EVENT_READ, rank)
        self._say(protocol.Ready(notes=self._nodes.notes))

    def _turn(self) -> None:
        """Wait for something to happen, and answer it."""
        for key, _ in self._selector.select(self._patience_s()):
            if key.fd == self._guard_lives:
                raise LeaderIsGone
            if key.fd == self._control_fd:
                self._events.flush()
                self._obey()
            elif key.fd == self._wake:
                os.read(self._wake, 4096)
            elif self._measuring.is_of(key.data):
                self._measuring.listen()
            elif isinstance(key.data, RankProcess) and key.data.results.is_open:
                self._listen(key.data)
        self._reap()
        self._look_at_the_clock()
        self._flush()

    def _patience_s(self) -> float:
        """How long may the selector wait? To the next time limit, and at most to the next sign."""
        now_s, due = time.monotonic(), [self._alive_due_s]
        for deadline_s in (
            self._measuring.deadline_s,
            self._watch.deadline_s(),
            self._ending.next_look_s(now_s),
        ):
            if deadline_s is not None:
                due.append(deadline_s)
        return max(0.0, min(due) - now_s)

    def _obey(self) -> None:
        """Carry out the leader's orders."""
        messages, _ = self._orders.read()
        for message in messages:
            self._carry_out(protocol.ORDER(message))
        if not self._orders.is_open:
            raise LeaderIsGone

    def _carry_out(self, order: protocol.Order) -> None:
        match order:
            case protocol.RunTrial():
                self._run_trial(order)
            case protocol.ReadCounters(label=label) if label.startswith(COUNTED_STEPS):
                self._count(label)
            case protocol.ReadCounters() | protocol.Release():
                self._go_on_at_mark(order)
            case protocol.AskClock(number=number):
                told = protocol.ClockTold(
                    number=number, monotonic_s=time.monotonic(), unix_s=time.time()
                )
                self._say(told)
            case ListenOnLink() | CallOnLink():
                self._probe_link(order)
            case protocol.DumpStacks():
                self._dump_stacks()
            case protocol.End():
                self._end()
            case LaunchOrder():
                raise ValueError("a second launch was ordered of one supervisor")
            case OpenPreflight() | CallOthers() | ClosePreflight():
                raise ValueError("a preflight was ordered of a supervisor: it is its agent's")
            case unknown:
                assert_never(unknown)

    def _go_on_at_mark(self, order: protocol.ReadCounters | protocol.Release) -> None:
        mark = self._mark
        if mark is None or mark.label != order.label:
            return
        if isinstance(order, protocol.Release):
            self._release(mark)
        else:
            self._read_counters(mark)
            self._say(protocol.CountersRead(label=mark.label))

    def _run_trial(self, order: protocol.RunTrial) -> None:
        if self._ending.stage is not Stage.RUNNING:
            return

        def begin(facts: LinkFacts | None) -> None:
            self._say(protocol.TrialStarts(facts=facts, notes=self._nodes.notes))
            self._nodes.make_ready_for(order.command.task)
            self._watch.all_enter(Phase.RENDEZVOUS, time.monotonic())
            for rank in self._ranks:
                self._tell(rank, order.command)

        self._measuring.begin(self._nodes.reshape(order.link), begin)

    def _probe_link(self, order: ListenOnLink | CallOnLink) -> None:
        if self._ending.stage is Stage.RUNNING:
            names = [name for node in self._order.nodes for name in node.interfaces]
            self._measuring.begin(probe_link(order, names, self._say), self._say)

    def _dump_stacks(self) -> None:
        if self._ending.stage in (Stage.RUNNING, Stage.COLLECTING):
            self._ending.dump_stacks(time.monotonic())

    def _end(self) -> None:
        self._measuring.drop()
        if self._ending.stage is not Stage.RUNNING:
            return
        now_s = time.monotonic()
        if not self._watch.is_idle:
            self._ending.terminate(now_s)
            return
        self._ending.leave(now_s)
        for rank in self._ranks:
            self._tell(rank, EndCommand())

    def _listen(self, rank: RankProcess) -> None:
        """Take in what a rank says, pass it on, and release all when the last reached a mark."""
        messages, others = rank.results.read()
        for line in others:
            rank.note(f"not a frame on the result pipe: {line[:_GARBAGE_NOTE_BYTES]!r}")
        for message in messages:
            self._hear(rank, message)
        if not rank.results.is_open:
            self._selector.unregister(rank.results.fd)
            rank.results.close()

    def _hear(self, rank: RankProcess, message: JsonObject) -> None:
        number, now_s = rank.plan.rank, time.monotonic()
        self._watch.hear(number, message, now_s)
        try:
            self._say(protocol.RankSaid(rank=number, message=message))
        except ValueError as error:  # NaN in it, or longer than a frame may be
            rank.note(f"a frame could not be passed on: {error}")
            return
        if message.get("type") == "count" and self._order.owns_all:
            self._count(str(message.get("label")))
        if message.get("type") == "stalled" and self._ending.stage is Stage.RUNNING:
            self._give_up(self._watch.stall(number, str(message.get("message"))), now_s)
        if message.get("type") == "stacks":
            rank.hear_stacks(message)
        if message.get("type") == "failed":
            self._ending.collect(now_s, saw_hang=message.get("kind") == ErrorKind.HUNG)
        label = self._watch.mark_reached()
        if label is not None and self._ending.stage is Stage.RUNNING and self._mark is None:
            self._meet(OpenMark(label=label, reached_s=time.monotonic()))

    def _meet(self, mark: OpenMark) -> None:
        """All ranks here wait. Where others are elsewhere, the leader says when all do."""
        self._mark = mark
        if self._order.owns_all:
            self._read_counters(mark)
            self._release(mark)
        else:
            self._say(protocol.RanksWait(label=mark.label))

    def _read_counters(self, mark: OpenMark) -> None:
        mark.nodes = self._nodes.read_counters(
            [(rank.plan.node, rank.pid if rank.is_running else None) for rank in self._ranks]
        )

    def _count(self, label: str) -> None:
        """While the ranks go on, and so with what they have started and not waited for yet."""
        pids = [
            (rank.plan.node, pid)
            for rank in self._ranks
            if rank.is_running
            for pid in (rank.pid, *descendants(rank.pid))
        ]
        time_s, nodes = time.monotonic(), self._nodes.read_counters(pids)
        self._say(protocol.Marked(label=label, time_s=time_s, nodes=nodes))

    def _release(self, mark: OpenMark) -> None:
        """Let the ranks go on."""
        self._mark = None
        released_s = time.monotonic()
        self._watch.release(released_s)
        for rank in self._ranks:
            self._tell(rank, ReleaseCommand(label=mark.label))
        self._say(mark.marked(released_s))

    def _reap(self) -> None:
        """Which processes have ended? A rank's last words are heard before its end is told."""
        by_pid = {rank.pid: rank for rank in self._ranks if rank.is_running}
        for pid, status in reap_all():
            rank = by_pid.get(pid)
            if rank is None:
                continue
            while rank.results.is_open and select.select([rank.results.fd], [], [], 0)[0]:
                self._listen(rank)
            rank.is_running = False
            self._watch.ranks[rank.plan.rank].enter(None, time.monotonic())
            code = os.waitstatus_to_exitcode(status)
            self._say(
                protocol.RankExited(
                    rank=rank.plan.rank,
                    exit_code=code if code >= 0 else None,
                    signal=-code if code < 0 else None,
                    was_told_to=self._ending.is_under_way,
                )
            )
            self._measuring.drop()  # there will be no trial on what they are of
            # torch's watchdog aborts a process whose collective timed out.
            self._ending.collect(time.monotonic(), saw_hang=-code == signal.SIGABRT)

    def _look_at_the_clock(self) -> None:
        now_s = time.monotonic()
        self._measuring.look_at_the_clock(now_s)
        if self._ending.stage is Stage.RUNNING:
            deadline_s = self._watch.deadline_s()
            if deadline_s is not None and now_s >= deadline_s:
                self._expire(now_s)
        if now_s >= self._alive_due_s:
            self._alive_due_s = now_s + ALIVE_EVERY_S
            self._say(protocol.Alive())
            self._check_logs(now_s)
        before = self._ending.stage
        self._ending.advance(now_s, self._watch)
        if before is Stage.COLLECTING and self._ending.stage is Stage.DUMPING:
            self._say(protocol.StacksDumped())

    def _expire(self, now_s: float) -> None:
        expiry = self._watch.expiry(now_s, self._stopped_ranks())
        if expiry is not None:
            self._give_up(expiry, now_s)

    def _give_up(self, expiry: Expiry, now_s: float) -> None:
        self._say(
            protocol.PhaseExpired(
                phase=expiry.phase,
                rank=expiry.rank,
                message=expiry.message,
                waits_at=expiry.waits_at,
            )
        )
        for rank in self._ranks:
            rank.note(f"{expiry.message}; stacks follow")
        self._ending.dump_stacks(now_s)

    def _stopped_ranks(self) -> frozenset[int]:
        stopped = set()
        for rank in self._ranks:
            found = parent_and_state(rank.pid)
            if found is not None and found[1] in "Tt":
                stopped.add(rank.plan.rank)
        return frozenset(stopped)

    def _check_logs(self, now_s: float) -> None:
        if self._ending.stage is not Stage.RUNNING:
            return
        for rank in self._ranks:
            if os.fstat(rank.log_fd).st_size > MAX_LOG_BYTES:
                self._say(protocol.LogFlooded(rank=rank.plan.rank, limit_bytes=MAX_LOG_BYTES))
                self._ending.terminate(now_s)
                return

    def _tell(self, rank: RankProcess, command: Command) -> None:
        rank.commands.send(command)

    def _say(self, event: protocol.Event) -> None:
        self._events.send(event)

    def _flush(self) -> None:
        """Write on what did not fit, and hear from the selector when more fits."""
        for rank in self._ranks:
            rank.commands.flush()
        self._events.flush()
        if not self._events.is_open:
            raise LeaderIsGone
        wanted = selectors.EVENT_READ
        if self._events.has_waiting:
            wanted |= selectors.EVENT_WRITE
        if self._selector.get_key(self._control_fd).events != wanted:
            self._selector.modify(self._control_fd, wanted)

    def _drain_events(self) -> None:
        """Write the last events, for as long as the leader reads them."""
        while self._events.has_waiting:
            _, writable, _ = select.select([], [self._control_fd], [], _LAST_EVENTS_S)
            if not writable:
                return
            self._events.flush()
