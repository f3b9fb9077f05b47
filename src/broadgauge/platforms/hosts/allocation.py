"""A leader and an agent on each host: how are they started, found again, and ended?"""

import os
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass

from broadgauge.agent import bundle
from broadgauge.agent.facts import HostFacts
from broadgauge.agent.on_host import AgentStart
from broadgauge.leader.main import LeaderStart
from broadgauge.messages.leader import Stop
from broadgauge.messages.proof import new_token
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.hosts.bootstrap import FOLDER_WORD, start
from broadgauge.platforms.hosts.checking import MOST_AT_ONCE
from broadgauge.platforms.hosts.leader_place import LeaderPlace
from broadgauge.platforms.hosts.ssh import SSH_FAILED, ssh_command
from broadgauge.platforms.led.handle import LinkLost, NoLeader
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.machines.hosts import Host

KEEP_S = 24 * 3600.0
"""How long a leader waits for a tool, with all done or nothing to do."""
ATTACH_LIMIT_S = waiting_limit_s(30.0)
STOP_LIMIT_S = waiting_limit_s(90.0)
"""For ranks that do not end at once."""
LOOK_AGAIN_AFTER_S = 0.2
"""While it ends."""


def start_allocation(
    hosts: Sequence[Host], facts: Sequence[HostFacts], secrets: dict[str, str]
) -> LeaderPlace:
    """A leader on the first host, agents on all. Raises PlatformError, with nothing left.

    `secrets`: variables that ranks get and that stand in no order.
    """
    first, address, token = hosts[0], facts[0].reached_at, new_token()
    if address is None:
        raise PlatformError(f"{first.ssh}: its own address is unknown: SSH_CONNECTION is not set")
    leader = LeaderStart(
        folder=FOLDER_WORD,
        address=address,
        token=token,
        version=bundle.version(),
        keep_s=KEEP_S,
    )
    told = start(first.ssh, first.python, "leader", asdict(leader), lives_on=True)
    place = LeaderPlace(
        host=first.ssh, python=first.python, folder=told["folder"], zip_hash=bundle.version()
    )
    has_started = False

    def start_agent(numbered: tuple[int, Host]) -> None:
        number, host = numbered
        agent = AgentStart(
            number=number,
            leader_address=address,
            leader_port=told["port"],
            token=token,
            version=bundle.version(),
            folder=FOLDER_WORD,
            supervisor=(
                *(host.python, f"{FOLDER_WORD}/broadgauge.zip", "supervise"),
                *(f"{FOLDER_WORD}/logs", host.working_folder or "."),
            ),
            logs=f"{FOLDER_WORD}/logs",
            working_folder=host.working_folder or "",
            secrets=secrets,
        )
        folder = host.working_folder
        start(host.ssh, host.python, "agent", asdict(agent), working_folder=folder, lives_on=True)

    try:
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            list(pool.map(start_agent, enumerate(hosts)))
        has_started = True
    finally:
        if not has_started:  # one of them refused, or the user wants the run to end
            stop(place)
    return place


@dataclass(slots=True)
class AttachedLeader:
    """A relay over ssh, and the link through it."""

    process: "subprocess.Popen[bytes]"
    link: LeaderLink

    def close(self) -> None:
        """Let go of the leader, which lives on."""
        self.link.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(waiting_limit_s(5.0))
            return
        self.process.kill()
        self.process.wait()


def attach(place: LeaderPlace, after: int) -> AttachedLeader:
    """Hear the leader from its event after this one.

    Raises NoLeader; LinkLost where nothing answers, now or in time.
    """
    zip_path, socket_path = f"{place.folder}/broadgauge.zip", f"{place.folder}/socket"
    process = subprocess.Popen(
        ssh_command(place.host, place.python, zip_path, "relay", socket_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the tool's: it still has something to tell
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # Of our own: Popen's files would close their numbers again, when they are another stream's.
    stream = ByteStream(
        reading=os.dup(process.stdout.fileno()), writing=os.dup(process.stdin.fileno())
    )
    process.stdout.close()
    process.stdin.close()
    try:
        link = LeaderLink(stream, after)
        link.wait_for_hello(ATTACH_LIMIT_S)
    except LinkLost as loss:
        code = _exit_code(process)
        stream.close()  # not before: the relay would end as if there were no leader
        if code not in (None, SSH_FAILED):
            raise NoLeader(f"the leader on {place.host} has ended") from loss
        raise
    return AttachedLeader(process=process, link=link)


def _exit_code(process: "subprocess.Popen[bytes]") -> int | None:
    """Of a relay that leads nowhere; None: it had to be ended."""
    try:
        return process.wait(waiting_limit_s(2.0))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def stop(place: LeaderPlace) -> bool:
    """Have the leader and its agents end and leave nothing; False: nobody knows whether it did."""
    deadline_s = time.monotonic() + STOP_LIMIT_S
    while time.monotonic() < deadline_s:
        try:
            attached = attach(place, after=2**62)
        except NoLeader:
            return True
        except LinkLost:
            return False
        try:
            attached.link.send(Stop())
            while time.monotonic() < deadline_s:
                attached.link.receive(ATTACH_LIMIT_S)
        except LinkLost:
            pass  # it has ended, or is about to: one that gave up says so first
        finally:
            attached.close()
        time.sleep(LOOK_AGAIN_AFTER_S)
    return False
