"""Stands in for the supervisor of one agent's ranks: `fake_supervisor.py [key=value …] DESCRIPTOR`.

Ranks are words only. What goes wrong is asked for by the name of a trial: `fails-<rank>`,
`dies-<rank>`, `kills-supervisor-<node>`, `hangs-<rank>`, `leaves-<rank>`; a launch with
`refused-<node>` in its variables does not come up there; with `deaf` a node can't measure its link,
and with `dies_probing` a rank of it fails meanwhile. `pause=<s>` lies between two marks, but of a
trial that is `quick`.

`counts-<rank>` asks for counters while all go on.
"""

import os
import select
import signal
import socket
import sys
import time
from typing import Any

from broadgauge.messages.agent import (
    ORDER,
    CountersRead,
    DumpStacks,
    End,
    Ended,
    Marked,
    NodeReading,
    Order,
    PhaseExpired,
    RankExited,
    RankLeft,
    RankSaid,
    RanksWait,
    ReadCounters,
    Ready,
    Refused,
    Release,
    RunTrial,
    TrialStarts,
)
from broadgauge.messages.counters import NodeCounters
from broadgauge.messages.found_links import (
    CallOnLink,
    Endpoint,
    LinkProbed,
    ListenOnLink,
    ListensOnLink,
)
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.rank import COUNTED_STEPS
from broadgauge.messages.vocabulary import Phase


class Supervisor:
    def __init__(self, control: socket.socket, pause_s: float) -> None:
        self.control, self.pause_s = control, pause_s
        self.frames = FrameWriter(unique_sender("agent"))
        self.reader = FrameReader()
        self.waiting: list[dict[str, Any]] = []

    def say(self, event: Any) -> None:
        self.control.sendall(self.frames.write(event))

    def order(self) -> Order | None:
        while not self.waiting:
            data = self.control.recv(1 << 16)
            if not data:
                return None
            self.waiting += [received.message for received in self.reader.feed(data)[0]]
        return ORDER(self.waiting.pop(0))

    def run(self) -> None:
        launch = self.order()
        assert isinstance(launch, LaunchOrder), launch
        self.launch = launch
        self.node = launch.nodes[0].node
        if launch.environment.get("refused") == str(self.node):
            self.say(Refused(message="no such program", hint="install it"))
            return
        self.say(Ready(notes=(f"node {self.node} stands",)))
        for rank in launch.ranks:
            self.hear(rank.rank, type="hello", torch=launch.environment.get("torch", "2.11"))
        while isinstance(order := self.order(), (RunTrial, ListenOnLink, CallOnLink)):
            goes_on = self.trial(order) if isinstance(order, RunTrial) else self.probe_link(order)
            if not goes_on:
                break
        if order is not None:
            self.say(Ended())

    def hear(self, rank: int, **message: Any) -> None:
        self.say(RankSaid(rank=rank, message={"rank": rank, **message}))

    def probe_link(self, order: ListenOnLink | CallOnLink) -> bool:
        """Streams carry 9 Gbit/s each, and a byte's way is 0.1 ms."""
        number, num_streams = order.probe.number, order.probe.num_streams
        variables = self.launch.environment
        if variables.get("dies_probing") == str(self.node):
            self.hear(self.launch.ranks[0].rank, type="failed", kind="crashed", message="planted")
            return False
        if variables.get("deaf") == str(self.node):
            self.say(LinkProbed(number=number, trouble=f"node {self.node} is deaf"))
        elif isinstance(order, CallOnLink):
            assert order.endpoints == (Endpoint(address="10.0.0.9", port=99),)
            took_s = None if num_streams else 1e-4
            self.say(LinkProbed(number=number, round_trip_s=took_s, congestion_control="cubic"))
        else:
            where = (Endpoint(address="10.0.0.9", port=99),)
            self.say(ListensOnLink(number=number, endpoints=where))
            self.say(LinkProbed(number=number, stream_gbps=9.0 * num_streams or None))
        return True

    def trial(self, order: RunTrial) -> bool:
        trial_id = order.command.trial_id
        fault, _, number = trial_id.rpartition(".")[2].rpartition("-")
        mine = [rank.rank for rank in self.launch.ranks]
        self.say(TrialStarts(facts=None))
        if fault == "kills-supervisor" and int(number) == self.node:
            os.kill(os.getpid(), signal.SIGKILL)
        for rank in mine:
            self.hear(rank, type="phase", trial_id=trial_id, phase="measure")
        if fault in ("fails", "dies", "hangs", "leaves") and int(number) in mine:
            return self.go_wrong(fault, int(number), trial_id)
        if fault == "counts" and int(number) in mine:
            self.hear(int(number), type="count", trial_id=trial_id, label=f"{COUNTED_STEPS}3")
        for label in ("steps:begin", "steps:end"):
            if not self.meet(label):
                return False
            is_quick = number == "quick"
            if label.endswith(":begin") and not is_quick and self.is_told_meanwhile():
                return False  # the only order that comes in a timed part is to end
        for rank in mine:
            self.hear(rank, type="block", kind="steps", trial_id=trial_id, label="steps")
            self.hear(rank, type="done", trial_id=trial_id)
        return True

    def is_told_meanwhile(self) -> bool:
        """Within the pause; an order may have come with the one before it."""
        return bool(self.waiting or select.select([self.control], [], [], self.pause_s)[0])

    def go_wrong(self, fault: str, rank: int, trial_id: str) -> bool:
        if fault == "fails":
            self.hear(rank, type="failed", trial_id=trial_id, kind="crashed", message="planted")
        elif fault == "dies":
            self.say(RankExited(rank=rank, exit_code=7, signal=None, was_told_to=False))
        else:
            expiry = PhaseExpired(phase=Phase.MEASURE, rank=rank, message="silent", waits_at=None)
            self.say(expiry)
        if fault == "leaves":
            self.say(RankLeft(rank=rank))
        return False

    def meet(self, label: str) -> bool:
        self.say(RanksWait(label=label))
        while (order := self.order()) is not None:
            if isinstance(order, End):
                return False
            if isinstance(order, DumpStacks):
                self.hear(self.launch.ranks[0].rank, type="stacks", trial_id="t", ranks=[])
                return False
            if isinstance(order, ReadCounters) and order.label.startswith(COUNTED_STEPS):
                self.say(self.marked(order.label))
            elif isinstance(order, ReadCounters):
                self.say(CountersRead(label=order.label))
            if isinstance(order, Release):
                self.say(self.marked(label))
                return True
        return False

    def marked(self, label: str) -> Marked:
        counters = NodeCounters(
            tx_bytes=100 * self.node,
            rx_bytes=0,
            drops_count=None,
            retransmits_count=None,
            cores_count=1,
            cpu_user_s=0.0,
            cpu_system_s=0.0,
            cpu_softirq_s=0.0,
        )
        reading = NodeReading(node=self.node, counters=counters)
        return Marked(label=label, time_s=time.monotonic(), nodes=(reading,))


def main() -> None:
    options = dict(word.split("=") for word in sys.argv[1:-1])
    control = socket.socket(fileno=int(sys.argv[-1]))
    Supervisor(control, float(options.get("pause", "0"))).run()


if __name__ == "__main__":
    main()
