"""Which plain reads and writes are measured of a storage, each rank on files of its own?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.storage import READ_ACCESSES, CacheProof, RawAccess, RawPlan
from broadgauge.probes.storage import raw_files, raw_objects
from broadgauge.probes.storage.accounting import Operations, Parts, Usage
from broadgauge.probes.storage.cache import BLOCK_TYPES, filesystem_type
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import remove_part
from broadgauge.probes.storage.reads import ReadFiles, make_folder_unseen, put_file
from broadgauge.probes.storage.variants import Cache, Figures, Here, Variant

SMALL_BYTES = raw_files.PAGE_BYTES


def takes_direct(here: Here, plan: RawPlan) -> bool:
    """On this rank; all must say so. It writes one page."""
    if here.own.folder is None:
        return False
    return raw_files.takes_direct(Path(here.own.folder), plan.block_bytes, plan.file_bytes)


def variants(here: Here, plan: RawPlan, *, is_direct: bool) -> Iterator[Variant]:
    """In the order of the plan, each read once for each state of the cache."""
    raw = _Raw(here=here, plan=plan, is_direct=is_direct)
    for access in plan.accesses:
        if access not in READ_ACCESSES:
            yield raw.writing(access)
            continue
        for asked in here.caches_here:
            yield raw.reading(access, asked)


@dataclass(slots=True, kw_only=True)
class _Raw:
    here: Here
    plan: RawPlan
    is_direct: bool

    def writing(self, access: RawAccess) -> Variant:
        world = self.here.ranks.world_size
        size = {
            "write": self.plan.file_bytes,
            "small-write": self.plan.small_files * SMALL_BYTES,
        }.get(access, 0)
        return Variant(
            phase="raw",
            name=self._name(access, None),
            asked_cache=None,
            prepare=self._make_folder,
            run=lambda: self._timed(access, None),
            clean=lambda: remove_part(self.here.own, self._folder(access)),
            written_bytes=world * size,
        )

    def reading(self, access: RawAccess, asked: Cache) -> Variant:
        name = f"{access}-{asked}"
        is_small = access == "small-read"
        size = self.plan.small_files * SMALL_BYTES if is_small else self.plan.file_bytes
        files = ReadFiles(
            asked=asked, ranks=self.here.ranks, paths=lambda: self._paths(access, asked)
        )

        def prepare() -> None:
            self._make_folder()
            files.is_fresh = self._put(access, asked)
            files.prepare()

        def prove(figures: Figures) -> CacheProof:
            return files.prove(figures.usage.read_bytes, self._distinct_bytes(access, figures))

        return Variant(
            phase="raw",
            name=self._name(access, asked),
            asked_cache=asked,
            prepare=prepare,
            run=lambda: self._timed(access, asked),
            prove=prove,
            clean=lambda: remove_part(self.here.own, self._folder(name)),
            written_bytes=self.here.ranks.world_size * size,
        )

    def _distinct_bytes(self, access: RawAccess, figures: Figures) -> int:
        """Pages may be drawn twice, the second time from memory."""
        if access != "random-read":
            return figures.num_bytes
        drawn = raw_files.chosen_pages(self.plan.file_bytes, self.plan.random_reads)
        return len(set(drawn)) * SMALL_BYTES

    def _name(self, access: RawAccess, asked: Cache | None) -> str:
        is_around = access == "write" or (access == "read" and asked == "cold")
        return f"{access}, direct" if is_around and self.is_direct else access

    def _folder(self, name: str) -> str:
        return f"raw/rank{self.here.ranks.rank}/{name}"

    def _make_folder(self) -> None:
        if self.here.own.folder is not None:
            self.here.own.path(f"raw/rank{self.here.ranks.rank}").mkdir(parents=True, exist_ok=True)

    def _large(self, name: str, *, is_direct: bool) -> raw_files.LargeFile:
        own, plan = self.here.own, self.plan
        path = own.path(f"{self._folder(name)}/large")
        path.parent.mkdir(parents=True, exist_ok=True)
        is_block = filesystem_type(path.parent) in BLOCK_TYPES
        return raw_files.LargeFile(
            path=path,
            file_bytes=plan.file_bytes,
            block_bytes=plan.block_bytes,
            is_direct=is_direct,
            depth=raw_files.DEPTH if is_block else 1,
        )

    def _paths(self, access: RawAccess, asked: Cache) -> list[Path]:
        if self.here.own.folder is None:
            return []
        folder = self.here.own.path(self._folder(f"{access}-{asked}"))
        if access == "small-read":
            return [folder / str(number) for number in range(self.plan.small_files)]
        return [folder / "large"]

    def _put(self, access: RawAccess, asked: Cache) -> bool:
        """What is read: into the bucket itself where there is one. Is it fresh?"""
        own, plan, folder = self.here.own, self.plan, self._folder(f"{access}-{asked}")
        passes_mount = own.folder is not None and own.behind is None
        if access == "small-read":
            if passes_mount:
                raw_files.write_small(own.path(folder), plan.small_files, Operations())
                return False
            content = bytes(SMALL_BYTES)
            return all(put_file(own, f"{folder}/{n}", content) for n in range(plan.small_files))
        if passes_mount:
            self._large(f"{access}-{asked}", is_direct=False).write(Operations(), Parts())
            return False
        bucket = own.behind or own.objects
        assert bucket is not None
        if own.folder is not None:
            make_folder_unseen(own, f"{folder}/large")
        key = key_of(bucket, f"{folder}/large")
        sizes = (plan.file_bytes, plan.block_bytes)
        raw_objects.write(open_store(bucket), key, sizes, Operations(), Parts())
        return True

    def _timed(self, access: RawAccess, asked: Cache | None) -> Figures:
        operations, parts = Operations(), Parts()
        measure = self._on_folder if self.here.own.folder is not None else self._on_objects
        call = measure(access, asked, operations, parts)
        before = Usage.now()
        num_bytes = call()
        usage = before.until_now()
        return Figures(
            num_bytes=num_bytes,
            stall_s=usage.time_s,
            busy_s=usage.time_s,
            usage=usage,
            operations=operations,
            parts_s=parts.seconds,
        )

    def _on_folder(
        self, access: RawAccess, asked: Cache | None, operations: Operations, parts: Parts
    ) -> Callable[[], int]:
        plan = self.plan
        name = access if asked is None else f"{access}-{asked}"
        folder = self.here.own.path(self._folder(name))
        large = self._large(name, is_direct=self._name(access, asked).endswith("direct"))
        calls: dict[RawAccess, Callable[[], int]] = {
            "write": lambda: large.write(operations, parts),
            "read": lambda: large.read(operations, parts),
            "random-read": lambda: raw_files.read_pages(large.path, plan.random_reads, operations),
            "small-write": lambda: raw_files.write_small(folder, plan.small_files, operations),
            "small-read": lambda: raw_files.read_small(folder, plan.small_files, operations),
            "metadata": lambda: raw_files.use_names(folder, plan.small_files, operations),
        }
        return calls[access]

    def _on_objects(
        self, access: RawAccess, asked: Cache | None, operations: Operations, parts: Parts
    ) -> Callable[[], int]:
        plan, objects = self.plan, self.here.own.objects
        assert objects is not None
        store = open_store(objects)
        folder = key_of(objects, self._folder(access if asked is None else f"{access}-{asked}"))
        large, sizes, small = (
            f"{folder}/large",
            (plan.file_bytes, plan.block_bytes),
            plan.small_files,
        )
        calls: dict[RawAccess, Callable[[], int]] = {
            "write": lambda: raw_objects.write(store, large, sizes, operations, parts),
            "read": lambda: raw_objects.read(store, large, sizes, operations, parts),
            "random-read": lambda: raw_objects.read_pages(
                store, large, plan.file_bytes, plan.random_reads, operations
            ),
            "small-write": lambda: raw_objects.write_small(store, folder, small, operations),
            "small-read": lambda: raw_objects.read_small(store, folder, small, operations),
            "metadata": lambda: raw_objects.use_names(store, folder, small, operations),
        }
        return calls[access]
