"""Which communicator does a line speak of?

NCCL names a communicator by an address, which is another one in each process, and by a commId that
all ranks share; a communicator that was split off has its parent's address instead, with the number
of the split and its colour. Lines of rings, trees and channels name ranks only: they belong to the
communicator that their process is initialising, or, where connections are made with the first
collective (NCCL 2.22 and later), to the first one that is not connected yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Place, Speaker
from broadgauge.doctor.log.room import MOST_COMMUNICATORS, Room

UNNAMED = "unknown"
"""What lines belong to that stand before any that names their communicator."""
Holder = tuple[Speaker, int | None]
"""A process and its CUDA device: a process may have ranks on several."""
_MOST_HELD = 64
"""By one of these, the last ones: a training has a few, and each line asks all of them."""


@dataclass(slots=True)
class _Held:
    """One communicator, as one rank has it."""

    communicator: CommunicatorFacts
    address: tuple[Speaker, str]
    rank: int | None
    is_complete: bool = False
    is_connected: bool = False


@dataclass(slots=True)
class Communicators:
    """Those of a reading, and who holds which."""

    reading: LogReading
    room: Room = field(default_factory=Room)
    _held: dict[Holder, list[_Held]] = field(default_factory=dict)
    _by_address: dict[tuple[Speaker, str], _Held] = field(default_factory=dict)
    _num_anonymous: dict[tuple[int, int], int] = field(default_factory=dict)
    """By size and rank: how many communicators without a name have it."""

    def begin(self, holder: Holder, told: dict[str, str], place: Place) -> CommunicatorFacts:
        """`Init START`: `told` has comm, rank, ranks, and comm_id or parent, split, color."""
        return self._begun(holder, told, place).communicator

    def _begun(self, holder: Holder, told: dict[str, str], place: Place) -> _Held:
        rank = int(told["rank"])
        num_ranks = int(told["ranks"])
        identity = self._identity(holder[0], told) or self._anonymous(num_ranks, rank)
        communicator = self._of(identity, place)
        communicator.num_ranks = num_ranks
        self.room.put(communicator.members, rank, holder[0])
        self.room.add(communicator.started, rank)
        if told.get("bus"):
            self.room.put(communicator.buses, rank, f"{int(told['bus'], 16):x}")
        return self._hold(holder, told["comm"], communicator, rank)

    def complete(self, holder: Holder, told: dict[str, str], place: Place) -> CommunicatorFacts:
        """`Init COMPLETE`; of a log whose beginning is missing it is the first that is heard."""
        held = self._by_address.get((holder[0], told["comm"]))
        if held is None:
            held = self._begun(holder, told, place)
        held.is_complete = True
        if held.rank is not None:
            self.room.add(held.communicator.completed, held.rank)
        return held.communicator

    def named(
        self, holder: Holder, address: str, rank: int, num_ranks: int, place: Place
    ) -> CommunicatorFacts:
        """The one at this address of this process, perhaps not heard of before."""
        held = self._by_address.get((holder[0], address))
        if held is None:
            communicator = self._of(self._anonymous(num_ranks, rank), place)
            communicator.num_ranks = num_ranks
            self.room.put(communicator.members, rank, holder[0])
            held = self._hold(holder, address, communicator, rank)
        return held.communicator

    def spoken_of(self, holder: Holder, highest_rank: int, place: Place) -> CommunicatorFacts:
        """The one that a line without a name is about, of so many ranks at least."""
        all_held = self._held.get(holder, ())
        if len(all_held) == 1 and (all_held[0].communicator.num_ranks or 0) > highest_rank:
            return all_held[0].communicator
        fitting: list[_Held] = []
        for each in reversed(all_held):
            if (each.communicator.num_ranks or highest_rank + 1) > highest_rank:
                if not each.is_complete:
                    return each.communicator
                fitting.append(each)
        if not fitting:
            return self._of(UNNAMED, place)
        first = next((each for each in reversed(fitting) if not each.is_connected), fitting[0])
        return first.communicator

    def connected(self, holder: Holder, communicator: CommunicatorFacts) -> None:
        """`Connected all rings` of it: later lines are about another."""
        for each in self._held.get(holder, ()):
            if each.communicator is communicator:
                each.is_connected = True

    def rename(self, known: Mapping[Speaker, Speaker]) -> None:
        """Speakers that are other ones in truth."""
        for communicator in self.reading.communicators.values() if known else ():
            members = communicator.members
            communicator.members = {rank: known.get(who, who) for rank, who in members.items()}

    def join_unnamed(self) -> None:
        """Channels listed before their communicator was named, as in the middle of a log: they
        are those of the only one that has so many ranks, where there is one.
        """
        communicators = self.reading.communicators
        unnamed = communicators.get(UNNAMED)
        if unnamed is None or len(communicators) != 2:
            return
        (known,) = (each for each in communicators.values() if each is not unnamed)
        ranks = {rank for pair in unnamed.paths for rank in pair} | set(unnamed.members)
        if any(rank >= (known.num_ranks or 0) for rank in ranks):
            return
        del communicators[UNNAMED]
        _join(known, unnamed)

    def _identity(self, speaker: Speaker, told: dict[str, str]) -> str | None:
        if told.get("comm_id"):
            return f"0x{int(told['comm_id'], 16):x}"
        if told.get("parent"):
            parent = self._by_address.get((speaker, told["parent"]))
            above = "unknown" if parent is None else parent.communicator.identity
            return f"{above}/{told.get('split', '?')}/{told.get('color', '?')}"
        return None

    def _anonymous(self, num_ranks: int, rank: int) -> str:
        """The first of this size, without a name, that has no such rank yet."""
        key = (num_ranks, rank)
        number = self._num_anonymous.get(key, 0)
        self.room.put(self._num_anonymous, key, number + 1)
        return f"unnamed {number} of {num_ranks}"

    def _of(self, identity: str, place: Place) -> CommunicatorFacts:
        known = self.reading.communicators.get(identity)
        if known is None:
            known = CommunicatorFacts(identity=identity, place=place)
            if len(self.reading.communicators) < MOST_COMMUNICATORS:
                self.reading.communicators[identity] = known
            else:
                self.room.num_left_out += 1
        return known

    def _hold(
        self, holder: Holder, address: str, communicator: CommunicatorFacts, rank: int
    ) -> _Held:
        held = _Held(communicator, (holder[0], address), rank)
        if holder not in self._held and not self.room.take():
            return held
        several = self._held.setdefault(holder, [])
        if len(several) >= _MOST_HELD:
            oldest = several.pop(0)
            if self._by_address.get(oldest.address) is oldest:
                del self._by_address[oldest.address]
        self._by_address[held.address] = held
        several.append(held)
        return held


def _join(known: CommunicatorFacts, other: CommunicatorFacts) -> None:
    """What was told of `other` was told of `known`; where both say it, `known` holds."""
    for pair, ways in other.paths.items():
        of_pair = known.paths.setdefault(pair, {})
        for way, channels in ways.items():
            of_pair.setdefault(way, set()).update(channels)
    for pair, devices in other.path_devices.items():
        known.path_devices.setdefault(pair, set()).update(devices)
    for pair, lines in other.p2p_lines.items():
        known.p2p_lines[pair] = {**lines, **known.p2p_lines.get(pair, {})}
    for name in ("members", "proxies", "rings", "lines", "local_ranks", "buses"):
        setattr(known, name, {**getattr(other, name), **getattr(known, name)})
    known.has_connected = known.has_connected or other.has_connected
    for name in (
        *("has_trees", "has_nvls", "num_channels", "num_nvls_channels"),
        *("num_collnet_channels", "num_p2p_channels"),
    ):
        if getattr(known, name) is None:
            setattr(known, name, getattr(other, name))
