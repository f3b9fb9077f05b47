"""What do the storage tests do on a node? Run as `in_node.py JSON` by inside.py, as a rank is.

It prints its answer as one line of JSON.
"""

import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from tests.platforms.emulated.attempts import Attempt, Ticks, attempt, until_they_agree

BUCKET = "broadgauge"
_DIRECT_BYTES = 4 << 20


def s3(endpoint: str, **more: Any) -> Any:
    """A client with the keys of this environment, which tries once."""
    import botocore.session
    from botocore.config import Config

    more = {"signature_version": "s3v4", **more}  # of presigned URLs, too
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=32, **more)
    return botocore.session.get_session().create_client("s3", endpoint_url=endpoint, config=config)


def there(client: Any, key: str) -> int | None:
    """The object's size; None: there is none."""
    from botocore.exceptions import ClientError

    with suppress(ClientError):
        size: int = client.head_object(Bucket=BUCKET, Key=key)["ContentLength"]
        return size
    return None


def objects(endpoint: str, num_bytes: int) -> Any:
    """Written whole and in parts, read whole and in ranges, listed and deleted."""
    client, data = s3(endpoint), os.urandom(num_bytes)
    client.put_object(Bucket=BUCKET, Key="whole", Body=data)
    upload = client.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    half = num_bytes // 2
    tags = [
        client.upload_part(Bucket=BUCKET, Key="parts", UploadId=upload, PartNumber=n, Body=part)
        for n, part in enumerate((data[:half], data[half:]), start=1)
    ]
    done = {"Parts": [{"PartNumber": n, "ETag": t["ETag"]} for n, t in enumerate(tags, start=1)]}
    client.complete_multipart_upload(
        Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload=done
    )
    answers = [
        client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in ("whole", "parts")
    ]
    part = client.get_object(Bucket=BUCKET, Key="whole", Range="bytes=100-1099")["Body"].read()
    listed = [each["Key"] for each in client.list_objects_v2(Bucket=BUCKET)["Contents"]]
    client.delete_object(Bucket=BUCKET, Key="parts")
    return {
        "is_same": answers == [data, data] and part == data[100:1100],
        "listed": listed,
        "is_deleted": there(client, "parts") is None,
    }


def requests(endpoint: str) -> Any:
    """How long do requests take, and how many does the proxy count?"""
    client = s3(endpoint)
    client.put_object(Bucket=BUCKET, Key="small", Body=b"1234")
    took_s = []
    for _ in range(5):
        begin_s = time.monotonic()
        client.get_object(Bucket=BUCKET, Key="small")["Body"].read()
        took_s.append(time.monotonic() - begin_s)
    with urlopen(f"{endpoint}/.broadgauge/requests") as answer:
        return {"took_s": took_s, "counts": json.load(answer)}


def timed(work: Callable[[], int], expected: float) -> Attempt:
    """Bytes a second that this work moved, against those expected."""
    ticks, begin_s = Ticks.now(), time.monotonic()
    num_bytes = work()
    took_s = time.monotonic() - begin_s
    return attempt(num_bytes / took_s / expected, took_s, Ticks.now() - ticks)


def read_rates(endpoint: str, num_bytes: int, expected: float, least: float) -> Any:
    """Of one object, from the first of its bytes."""
    client = s3(endpoint)
    client.put_object(Bucket=BUCKET, Key="large", Body=bytes(num_bytes))

    def once(_number: int) -> Attempt:
        body = client.get_object(Bucket=BUCKET, Key="large")["Body"]
        body.read(1 << 16)
        return timed(lambda: sum(map(len, iter(lambda: body.read(1 << 20), b""))), expected)

    return until_they_agree(once, least)


def in_parts(endpoint: str, num_bytes: int, parts: int, concurrency: int, enough_s: float) -> Any:
    """Seconds in which an object is read in ranges, so many at once, each on a connection that is
    open; again until two attempts took no longer than enough, six times at most."""
    client, size = s3(endpoint), num_bytes // parts
    client.put_object(Bucket=BUCKET, Key="ranged", Body=bytes(num_bytes))
    params = {"Bucket": BUCKET, "Key": "ranged"}
    url = urlsplit(client.generate_presigned_url("get_object", Params=params))
    path, mine = f"{url.path}?{url.query}", threading.local()

    def connect() -> None:
        mine.connection = HTTPConnection(url.netloc)
        mine.connection.connect()

    def read(number: int) -> int:
        span = f"bytes={number * size}-{(number + 1) * size - 1}"
        mine.connection.request("GET", path, headers={"Range": span})
        return len(mine.connection.getresponse().read())

    took_s: list[float] = []
    with ThreadPoolExecutor(concurrency, initializer=connect) as pool:
        list(pool.map(lambda _: time.sleep(0.1), range(concurrency)))  # starts all threads
        while len(took_s) < 6 and sum(each <= enough_s for each in took_s) < 2:
            begin_s = time.monotonic()
            assert sum(pool.map(read, range(parts))) == num_bytes
            took_s.append(time.monotonic() - begin_s)
    return took_s


def save(folder: str, endpoint: str, num_bytes: int) -> Any:
    """A file is written and fsynced; when do we go on, and when is its object whole?"""
    client, data = s3(endpoint), os.urandom(1 << 20) * (num_bytes >> 20)
    begin_s = time.monotonic()
    with Path(folder, "checkpoint").open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    stall_s = time.monotonic() - begin_s
    at_close = there(client, "checkpoint")
    due_s = begin_s + 60
    while there(client, "checkpoint") != num_bytes and time.monotonic() < due_s:
        time.sleep(0.02)
    durable_s = time.monotonic() - begin_s
    is_same = client.get_object(Bucket=BUCKET, Key="checkpoint")["Body"].read() == data
    mounts = Path("/proc/mounts").read_text()
    kind = next(line.split()[2] for line in mounts.splitlines() if folder in line)
    return {
        "stall_s": stall_s,
        "at_close": at_close,
        "durable_s": durable_s,
        "is_same": is_same,
        "mounted": kind,
        "seen": Path(folder, "checkpoint").stat().st_size,
    }


def write(folder: str, name: str, times: int = 1) -> Any:
    """A file for others."""
    with Path(folder, name).open("w") as file:
        file.write(f"by {os.uname().nodename}" * times)
        file.flush()
        os.fsync(file.fileno())
    return sorted(path.name for path in Path(folder).iterdir())


def read(folder: str, name: str) -> Any:
    """What others have written; None: nothing."""
    path = Path(folder, name)
    return path.read_text() if path.exists() else None


def direct(folder: str, num_bytes: int, expected: dict[str, float], least: float) -> Any:
    """Past the page cache: writes, then reads."""
    path = Path(folder, "direct")
    block = mmap.mmap(-1, _DIRECT_BYTES)  # O_DIRECT wants an aligned buffer

    def once(way: str) -> Attempt:
        flags = os.O_WRONLY | os.O_CREAT if way == "write" else os.O_RDONLY
        fd = os.open(path, flags | os.O_DIRECT, 0o600)

        def work() -> int:
            num_blocks = num_bytes // _DIRECT_BYTES
            move = (
                partial(os.write, fd, block) if way == "write" else partial(os.readv, fd, [block])
            )
            return sum(move() for _ in range(num_blocks))

        seen = timed(work, expected[way])
        os.close(fd)
        return seen

    return {way: until_they_agree(lambda _, way=way: once(way), least) for way in expected}


def get_with_limit(endpoint: str, limit_s: float) -> Any:
    """What does a client say of a server that is silent?"""
    from botocore.exceptions import BotoCoreError

    client = s3(endpoint, read_timeout=limit_s, connect_timeout=limit_s)
    try:
        return client.list_objects_v2(Bucket=BUCKET)["KeyCount"]
    except BotoCoreError as error:
        return type(error).__name__


def hang(folder: str) -> Any:
    """Read from a mount whose server is silent, in a child that outlives this one."""
    if os.fork() == 0:
        with suppress(OSError):
            Path(folder, "never").stat()
            list(Path(folder).iterdir())
        os._exit(0)
    return "left behind"


CASES: dict[str, Callable[..., Any]] = {
    case.__name__: case
    for case in (
        objects,
        requests,
        read_rates,
        in_parts,
        save,
        write,
        read,
        direct,
        get_with_limit,
        hang,
    )
}

if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(CASES[asked.pop("case")](**asked)) + "\n")
