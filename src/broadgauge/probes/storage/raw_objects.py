"""How fast are plain requests to an object store, and how long does each take?"""

import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from broadgauge.probes.storage.accounting import Operations, Parts
from broadgauge.probes.storage.raw_files import PAGE_BYTES, chosen_pages

Sizes = tuple[int, int]
"""Of the object, and of one write or read of it."""
DEPTH = 4
"""Requests at once, so that the line isn't idle while one of them waits for its answer."""


def write(store: Any, key: str, sizes: Sizes, operations: Operations, parts: Parts) -> int:
    """One object in parts, as s3fs uploads it."""
    total, block = sizes
    content = random.Random(0).randbytes(block)
    with parts.timed("upload"), store.open(key, "wb") as file:
        for offset in range(0, total, block):
            begin_s = time.perf_counter()
            file.write(memoryview(content)[: min(block, total - offset)])
            operations.seconds.append(time.perf_counter() - begin_s)
    return total


def read(store: Any, key: str, sizes: Sizes, operations: Operations, parts: Parts) -> int:
    """By requests for one block each."""
    total, block = sizes
    offsets = iter(range(0, total, block))

    def work(_: int) -> int:
        done = 0
        for offset in offsets:
            begin_s = time.perf_counter()
            done += len(store.cat_file(key, start=offset, end=min(offset + block, total)))
            operations.seconds.append(time.perf_counter() - begin_s)
        return done

    with parts.timed("read"), ThreadPoolExecutor(DEPTH) as threads:
        return sum(threads.map(work, range(DEPTH)))


def read_pages(store: Any, key: str, total: int, count: int, operations: Operations) -> int:
    done = 0
    for page in chosen_pages(total, count):
        offset = page * PAGE_BYTES
        begin_s = time.perf_counter()
        done += len(store.cat_file(key, start=offset, end=min(offset + PAGE_BYTES, total)))
        operations.seconds.append(time.perf_counter() - begin_s)
    return done


def write_small(store: Any, prefix: str, count: int, operations: Operations) -> int:
    content = random.Random(2).randbytes(PAGE_BYTES)
    for number in range(count):
        begin_s = time.perf_counter()
        store.pipe_file(f"{prefix}/{number}", content)
        operations.seconds.append(time.perf_counter() - begin_s)
    return count * PAGE_BYTES


def read_small(store: Any, prefix: str, count: int, operations: Operations) -> int:
    done = 0
    for number in range(count):
        begin_s = time.perf_counter()
        done += len(store.cat_file(f"{prefix}/{number}", start=0, end=PAGE_BYTES))
        operations.seconds.append(time.perf_counter() - begin_s)
    return done


def use_names(store: Any, prefix: str, count: int, operations: Operations) -> int:
    """Makes, asks for and removes empty objects; each of the three is an operation."""
    steps = (lambda key: store.pipe_file(key, b""), store.info, store.rm_file)
    for step, number in itertools.product(steps, range(count)):
        begin_s = time.perf_counter()
        step(f"{prefix}/empty{number}")
        operations.seconds.append(time.perf_counter() - begin_s)
    return 0
