"""Proves probes/event_files.py: scalars as TensorBoard's own writer leaves them, and no crash."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.probes.event_files import MOST_BYTES, EventFileError, masked_crc, scalars


def varint(value: int) -> bytes:
    head = b""
    while value > 0x7F:
        head += bytes([value & 0x7F | 0x80])
        value >>= 7
    return head + bytes([value])


def field(number: int, kind: int, data: bytes) -> bytes:
    return varint(number << 3 | kind) + (varint(len(data)) if kind == 2 else b"") + data


def scalar(tag: str, value: float, wall_s: float = 1.0) -> bytes:
    entry = field(1, 2, tag.encode()) + field(2, 5, struct.pack("<f", value))
    return field(1, 1, struct.pack("<d", wall_s)) + field(5, 2, field(1, 2, entry))


def tensor(tag: str, kind: int, content: bytes) -> bytes:
    """As the writers of TensorFlow 2 put scalars."""
    inner = field(1, 0, varint(kind)) + field(4, 2, content)
    entry = field(1, 2, tag.encode()) + field(8, 2, inner)
    return field(1, 1, struct.pack("<d", 2.0)) + field(5, 2, field(1, 2, entry))


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    crcs = [struct.pack("<I", masked_crc(each)) for each in (head, data)]
    return head + crcs[0] + data + crcs[1]


def written(folder: Path, *parts: bytes) -> Path:
    path = folder / "events.out.tfevents.1.host.1.0"
    path.write_bytes(b"".join(parts))
    return path


def read(path: Path, tag: str = "train/loss") -> tuple[list[float], str | None]:
    found: list[float] = []
    try:
        for _, value in scalars(path, tag):
            found.append(value)
    except EventFileError as error:
        return found, str(error)
    return found, None


def test_the_checksum_is_crc_32c() -> None:
    """Source: RFC 3720, B.4: of 32 zero bytes 0x8A9136AA, of "123456789" 0xE3069283."""

    def plain(data: bytes) -> int:
        turned = (masked_crc(data) - 0xA282EAD8) & 0xFFFFFFFF
        return (turned << 15 | turned >> 17) & 0xFFFFFFFF

    assert plain(bytes(32)) == 0x8A9136AA
    assert plain(b"123456789") == 0xE3069283


def test_scalars_of_one_tag_in_their_order(tmp_path: Path) -> None:
    events = [scalar("train/loss", 2.5), scalar("train/loss2", 9.0), scalar("train/loss", 1.5)]
    events += [
        tensor("train/loss", 1, struct.pack("<f", 0.5)),
        tensor("train/loss", 2, struct.pack("<d", 0.25)),
        tensor("train/loss", 7, b"text"),
    ]
    path = written(tmp_path, *map(record, events))
    assert read(path) == ([2.5, 1.5, 0.5, 0.25], None)
    assert read(path, "loss") == ([], None)


def test_large_records_of_other_things_are_passed(tmp_path: Path) -> None:
    image = record(field(3, 2, b"train/loss" + bytes(MOST_BYTES)))
    assert read(written(tmp_path, image, record(scalar("train/loss", 1.0)))) == ([1.0], None)


ONE = record(scalar("train/loss", 3.0))
DAMAGED = {
    "cut": ONE[:-3],
    "more": ONE + b"\x01\x02",
    "length": b"\xff" + ONE[1:],
    "content": ONE[:-20] + b"\xff" + ONE[-19:],
    "other": b"\x89PNG and what follows",
}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("cut", f"ends within a record, at byte {len(ONE)}"),
        ("more", f"ends within a record, at byte {2 * len(ONE)}"),
        ("length", f"no record of TensorBoard's at byte {len(ONE)}: wrong checksum"),
        ("content", f"damaged record at byte {len(ONE)}: wrong checksum"),
        ("other", f"no record of TensorBoard's at byte {len(ONE)}: wrong checksum"),
    ],
)
def test_damage_is_named_and_what_was_before_it_counts(
    damage: str, said: str, tmp_path: Path
) -> None:
    found, why = read(written(tmp_path, ONE, DAMAGED[damage]))
    assert why == said
    assert found == ([3.0, 3.0] if damage == "more" else [3.0])


@given(st.binary(max_size=60))
def test_whatever_a_record_holds_is_read_or_named(tmp_path_factory, data: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp(), record(b"train/loss" + data), record(data))
    read(path)


@pytest.mark.measuring
@pytest.mark.shares_cores
def test_it_reads_what_tensorboard_writes(tmp_path: Path) -> None:
    import numpy as np
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path), max_queue=1) as writer:
        for step in range(300):
            writer.add_scalar("train/loss", 4 - step / 100, step)
            writer.add_scalar("other", step, step, new_style=True)
        writer.add_scalar("new", 0.125, 1, new_style=True, double_precision=True)
        writer.add_text("train/loss_text", "words")
        writer.add_histogram("weights", np.arange(3.0))
    (path,) = tmp_path.glob("events.out.tfevents.*")
    found, why = read(path)
    assert why is None
    assert found == pytest.approx([4 - step / 100 for step in range(300)], rel=1e-6)
    assert read(path, "other") == ([float(step) for step in range(300)], None)
    assert read(path, "new") == ([0.125], None)
