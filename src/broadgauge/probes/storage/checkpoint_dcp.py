"""How does `torch.distributed.checkpoint` save, at once or in the background?

The background saves stage a copy of the state first, of CPU tensors too: training changes them
while they are written (PyTorch issue 144657).
"""

import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed.checkpoint as dcp

from broadgauge.messages.storage import CheckpointFormat
from broadgauge.probes.storage.accounting import Parts
from broadgauge.probes.storage.checkpoint_state import gathered
from broadgauge.probes.storage.objects import key_of, open_store, storage_options
from broadgauge.probes.storage.streams import time_streams
from broadgauge.probes.trial import RefusedError

if TYPE_CHECKING:
    from broadgauge.probes.storage.checkpoint_formats import Saving

METADATA_FILE = ".metadata"


def save(
    saving: "Saving", state: Any, format: CheckpointFormat, *, is_sharded: bool, rank: int
) -> None:
    check_format(format)
    if not is_sharded:
        state = gathered(state, saving.parts, is_first=rank == 0)
        if state is None:
            return
    alone = saving.group is None or not is_sharded
    writer = _writer(saving, is_timed=format in {"dcp", "dcp-async"})
    if format == "dcp":
        _save_now(saving, state, writer, alone=alone)
    else:
        _save_behind(saving, state, writer, format, alone=alone)


def check_format(format: CheckpointFormat) -> None:
    """Raises RefusedError where this machine can't."""
    if format == "dcp-async-pinned" and not torch.cuda.is_available():
        raise RefusedError("dcp-async-pinned stages in pinned memory, which needs a GPU")


def _folder(saving: "Saving") -> str:
    return f"checkpoints/{saving.name}"


def _writer(saving: "Saving", *, is_timed: bool) -> Any:
    """`is_timed`: it stays in this process. Streams of ours sync what they close; torch would sync
    all file systems of the machine for a stream without a descriptor."""
    own = saving.own
    if own.folder is not None:
        path = own.path(_folder(saving))
        writer: Any = dcp.FileSystemWriter(path, sync_files=not is_timed, overwrite=False)
    else:
        from torch.distributed.checkpoint._fsspec_filesystem import FsspecWriter

        assert own.objects is not None
        writer = FsspecWriter(
            f"s3://{key_of(own.objects, _folder(saving))}",
            sync_files=False,
            overwrite=False,
            **storage_options(own.objects),
        )
    if is_timed:
        is_file = own.folder is not None
        time_streams(writer.fs, saving.parts, saving.operations, is_file=is_file)
    return writer


def _save_now(saving: "Saving", state: Any, writer: Any, *, alone: bool) -> None:
    _watch_writing(writer, saving)
    dcp.save(state, storage_writer=writer, process_group=saving.group, no_dist=alone)
    note_files(saving)


def _save_behind(
    saving: "Saving", state: Any, writer: Any, format: CheckpointFormat, *, alone: bool
) -> None:
    from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

    is_process = format != "dcp-async"
    if format == "dcp-async":
        _watch_writing(writer, saving)
    begin_s = time.perf_counter()
    response = dcp.async_save(
        state,
        storage_writer=writer,
        process_group=saving.group,
        async_checkpointer_type=(
            AsyncCheckpointerType.PROCESS if is_process else AsyncCheckpointerType.THREAD
        ),
        async_stager=_pinned_stager() if format == "dcp-async-pinned" else None,
        no_dist=alone,
    )
    saving.background = getattr(response, "upload_completion", response)
    staged = getattr(response, "staging_completion", None)
    if staged is not None:
        staged.result()
    saving.parts.add("device_to_host", time.perf_counter() - begin_s)


def _pinned_stager() -> Any:
    """Copies into pinned memory that the saving process shares."""
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    return DefaultStager(
        StagingOptions(
            use_pinned_memory=True,
            use_shared_memory=True,
            use_async_staging=False,
            use_non_blocking_copy=True,
        )
    )


def _watch_writing(writer: Any, saving: "Saving") -> None:
    """What writing the data takes beside its streams, copies to the host in it; and which files
    come of it, how long each."""
    original, parts = writer.write_data, saving.parts

    def write_data(*arguments: Any, **named: Any) -> Any:
        begin_s, before_s = time.perf_counter(), _in_streams_s(parts)
        result = original(*arguments, **named)
        beside_s = time.perf_counter() - begin_s - (_in_streams_s(parts) - before_s)
        parts.add("serialise", max(0.0, beside_s))
        for written in result.wait():
            info = written.storage_data
            name = f"{_folder(saving)}/{info.relative_path}"
            saving.sizes[name] = max(saving.sizes.get(name) or 0, info.offset + info.length)
        return result

    writer.write_data = write_data


def _in_streams_s(parts: Parts) -> float:
    return sum(parts.seconds.get(part, 0.0) for part in ("write", "sync", "upload"))


def note_files(saving: "Saving") -> None:
    """What this rank has written, once the save has ended: as the streams counted, or, of a process
    whose streams are not ours, as the storage lists it."""
    import torch.distributed as dist

    rank = 0 if saving.group is None else dist.get_rank(saving.group)
    if not saving.sizes:
        saving.sizes.update(_listed(saving, f"__{rank}_"))
    if rank == 0:
        saving.sizes[f"{_folder(saving)}/{METADATA_FILE}"] = None


def _listed(saving: "Saving", begin: str) -> dict[str, int]:
    own, folder = saving.own, _folder(saving)
    if own.folder is not None:
        files = own.path(folder).glob(f"{begin}*")
        return {f"{folder}/{file.name}": file.stat().st_size for file in files}
    assert own.objects is not None
    found = open_store(own.objects).find(key_of(own.objects, folder), detail=True)
    sizes = {key.rpartition("/")[2]: int(info["size"]) for key, info in found.items()}
    return {f"{folder}/{name}": size for name, size in sizes.items() if name.startswith(begin)}


def start_saving_process(folder: str, group: Any) -> None:
    """So that no save waits for the process to start, which imports torch. A collective."""
    import torch.distributed as dist
    from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

    if not dist.is_initialized():
        raise RefusedError("dcp-async-process needs a process group, of one rank too")
    dcp.async_save(
        {f"rank{dist.get_rank()}": torch.zeros(1)},
        storage_writer=dcp.FileSystemWriter(folder, overwrite=True),
        process_group=group,
        async_checkpointer_type=AsyncCheckpointerType.PROCESS,
    ).result()
