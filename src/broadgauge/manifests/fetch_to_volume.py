"""How do model and data set get onto a volume, once? This file runs there, by itself.

It is the script of the Job in `35-prepare/`, and what other schedulers run: the standard library of
Python 3.10, and for the Hugging Face hub what the image has of huggingface_hub and datasets.

What is fetched lies in a folder named by a checksum of what was asked for. It is made under another
name and renamed when it is whole, with a file in it that says so: pods that come later, or twice,
find it done.

    BROADGAUGE_PREPARE='{"folder": …, "items": [{"name", "kind", "source", …}], "command": …}'
    python fetch_to_volume.py    # fetch_urls.py lies beside it
"""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from broadgauge.manifests.fetch_urls import FetchError, LastingError, downloaded, shown
else:  # in the Job there is no package, only the file beside this one
    from fetch_urls import FetchError, LastingError, downloaded, shown

DONE = ".broadgauge-done.json"
FAILED, BAD_INPUT = 1, 2
URLS = ("http", "https", "file")
VARIABLES = {"model": "BROADGAUGE_MODEL", "dataset": "BROADGAUGE_DATASET"}


def main() -> int:
    """The exit code: 0 all is there, 1 it can't be had now, 2 nor at another try."""
    try:
        asked = json.loads(os.environ["BROADGAUGE_PREPARE"])
        folder, items, command = Path(asked["folder"]), asked["items"], asked.get("command")
    except (KeyError, TypeError, ValueError) as error:
        say(f"BROADGAUGE_PREPARE says nothing usable: {error!r}")
        return BAD_INPUT
    try:
        make_folder(folder)
        for item in items:
            fetch(item, folder)
            os.environ[VARIABLES[item["kind"]]] = str(folder / item["name"])
        if command is not None:
            run(command, folder)
    except LastingError as error:
        say(str(error))
        return BAD_INPUT
    except (FetchError, OSError) as error:
        say(str(error))
        return FAILED
    say("all is there")
    return 0


def say(text: str) -> None:
    """A line of the pod's log."""
    print(f"broadgauge: {text}", flush=True)  # noqa: T201  its only way to speak


ABANDONED_AFTER_S = 3600.0
"""A part that nobody has written to for so long is nobody's: downloads write all the time."""


def make_folder(path: Path, *, may_exist: bool = True) -> None:
    """On the volume. Raises LastingError where this user may write nothing there, and OSError."""
    try:
        path.mkdir(parents=True, exist_ok=may_exist)
    except PermissionError as error:
        raise LastingError(
            f"{error.filename}: {error.strerror}: user {os.geteuid()}, groups "
            f"{sorted({os.getegid(), *os.getgroups()})}, may not write this volume. In pods "
            "`kubernetes.fs_group` gives it to a group that may, where the volume's driver can; "
            "`kubernetes.run_as_user` is another user"
        ) from None


def is_done(place: Path) -> bool:
    """Was it made whole?"""
    return (place / DONE).is_file()


def fetch(item: dict[str, Any], folder: Path) -> None:
    """One model or data set, unless it is there. Raises FetchError and OSError."""
    place, what = folder / item["name"], f"{item['kind']} {shown(item['source'])}"
    if is_done(place):
        say(f"{what} is there: {place}")
        return
    if place.exists():
        raise LastingError(f"{place} is there, and was not made by this: remove it, or rename it")
    _remove_abandoned(folder, item["name"])
    part = folder / f".{item['name']}.{socket.gethostname()}.{os.getpid()}.part"
    make_folder(part, may_exist=False)
    try:
        say(f"fetching {what}")
        began_s = time.monotonic()
        form = _fetched(item, part)
        size_bytes = sum(path.stat().st_size for path in part.rglob("*") if path.is_file())
        took_s = time.monotonic() - began_s
        about = {"source": shown(item["source"]), "form": form, "size_bytes": size_bytes}
        _mark(part, item | about)
        _put(part, place)
        say(f"{what}: {size_bytes / 1e6:,.1f} MB in {took_s:.1f} s, {form}, in {place}")
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_abandoned(folder: Path, name: str) -> None:
    """What pods left that were killed; one that is fetching now writes into its own."""
    for part in folder.glob(f".{glob.escape(name)}.*.part"):
        try:
            newest_s = max(each.lstat().st_mtime for each in (part, *part.rglob("*")))
        except OSError:  # it is being removed, or renamed
            continue
        if time.time() - newest_s > ABANDONED_AFTER_S:
            say(f"removing {part}, which nobody has written to for an hour")
            shutil.rmtree(part, ignore_errors=True)


def _put(part: Path, place: Path) -> None:
    """Another pod may have been faster: then what it made counts."""
    try:
        part.rename(place)
    except OSError:
        if not is_done(place):
            raise
        say(f"{place} came from another pod meanwhile")


def _mark(place: Path, content: dict[str, Any]) -> None:
    (place / DONE).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def _fetched(item: dict[str, Any], part: Path) -> str:
    """In which form it is now in the folder. Raises FetchError and OSError."""
    source = item["source"]
    if source.startswith("/"):
        return _copied(Path(source), part)
    try:
        url = urllib.parse.urlsplit(source)
    except ValueError:
        raise LastingError(f"{shown(source)} is no URL that can be asked for") from None
    if url.scheme == "file":
        return _copied(Path(urllib.request.url2pathname(url.path)), part)
    if url.scheme in URLS:
        name = Path(urllib.parse.unquote(url.path)).name or "file"
        return _unpacked(downloaded(source, part / name))
    if item["kind"] == "dataset":
        return _data_set(item, part)
    return _snapshot(item, part, "model")


def _copied(path: Path, part: Path) -> str:
    if path.is_dir():
        shutil.copytree(path, part, dirs_exist_ok=True)
        return "a copy of the folder"
    if not path.is_file():
        raise LastingError(f"{path}: no such file or folder here")
    return _unpacked(Path(shutil.copy2(path, part)))


def _unpacked(path: Path) -> str:
    """An archive's content beside it, and the archive gone; another file stays as it is."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                _extract(archive, path.parent)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(path.parent)
        else:
            return "a file as it was"
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
        raise LastingError(f"{path.name} can't be unpacked: {error}") from error
    path.unlink()
    return "unpacked"


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Nothing may leave the folder. Raises FetchError."""
    for member in archive.getmembers():
        target = os.path.normpath(folder / member.name)
        if not f"{target}/".startswith(f"{folder}/") or not (member.isfile() or member.isdir()):
            raise LastingError(f"the archive's `{member.name}` is no plain file below its folder")
    if hasattr(tarfile, "data_filter"):  # Python 3.12, and later patches of older ones
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)


def _data_set(item: dict[str, Any], part: Path) -> str:
    """As `datasets` saves it where the image has that, which trainings read; else as files."""
    try:
        import datasets  # of the image
    except ImportError:
        return _snapshot(item, part, "dataset")
    found = _asked(lambda: datasets.load_dataset(item["source"], item.get("config")), item)
    found.save_to_disk(str(part))
    return "saved by datasets"


def _snapshot(item: dict[str, Any], part: Path, kind: str) -> str:
    try:
        from huggingface_hub import snapshot_download  # of the image
    except ImportError:
        raise LastingError(
            f"{shown(item['source'])} is of the Hugging Face hub, and the image has no "
            "huggingface_hub: `pip install huggingface_hub` in it, or a URL of an archive instead"
        ) from None
    _asked(
        lambda: snapshot_download(
            item["source"],
            repo_type=kind,
            revision=item.get("revision"),
            local_dir=part,
            cache_dir=part / ".cache",
        ),
        item,
    )
    shutil.rmtree(part / ".cache", ignore_errors=True)
    return "files of the hub"


def _asked(ask: Any, item: dict[str, Any]) -> Any:
    """Libraries raise what they like: the last line of it is what helps."""
    try:
        return ask()
    except (OSError, ValueError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [""]
        raise FetchError(
            f"{shown(item['source'])}: {type(error).__name__}: {shown(lines[0])}"
        ) from error


def run(command: dict[str, Any], folder: Path) -> None:
    """The user's own, once. Raises FetchError and OSError."""
    place, words = folder / command["name"], command["words"]
    if is_done(place):
        say(f"the command has run: {place}")
        return
    make_folder(place)
    os.environ["BROADGAUGE_PREPARED"] = str(place)
    say(f"running {words[0]} for {place}")
    try:
        ended = subprocess.run(words, cwd=command.get("working_folder"), check=False)
    except OSError as error:
        raise LastingError(f"{words[0]} does not start: {error.strerror}") from error
    if ended.returncode:
        raise FetchError(f"{words[0]} ended with {ended.returncode}")
    _mark(place, command | {"words": [shown(word) for word in words]})


if __name__ == "__main__":
    sys.exit(main())
