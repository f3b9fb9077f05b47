"""Is the file that the user means opened, and nothing that would hold the reader for ever?"""

import os
from pathlib import Path

import pytest

from broadgauge.running.experiments import load
from broadgauge.specs.errors import InputError

TEXT = "name: {name}\nplatform: local\ncluster: {{shapes: [1x2]}}\nworkloads: [{{kind: train}}]\n"


def test_a_fifo_or_a_device_is_no_experiment(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "e.yaml").write_text("extends: fifo\n")
    for name in ("fifo", "e.yaml"):
        with pytest.raises(InputError, match="fifo: a FIFO, not an experiment file"):
            load(str(tmp_path / name), ())
    with pytest.raises(InputError, match="/dev/zero: a device"):
        load("/dev/zero", ())


def test_a_mistyped_name_is_told_the_file_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-training.yaml").write_text(TEXT.format(name="mine"))
    for given, hint in (
        ("my-trainnig.yaml", "did you mean `my-training.yaml`?"),
        ("quickstrat", "did you mean `quickstart`?"),
        ("gone/my-training.yaml", None),
    ):
        with pytest.raises(InputError, match="no such file, and no example") as refused:
            load(given, ())
        assert refused.value.hint == hint


def test_a_stream_that_the_shell_gives_is_read() -> None:
    """`run <(make-experiment)`."""
    out, into = os.pipe()
    os.write(into, TEXT.format(name="piped").encode())
    os.close(into)
    try:
        assert load(f"/dev/fd/{out}", ()).experiment.name == "piped"
    finally:
        os.close(out)


def test_a_base_above_a_link_is_where_the_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "far" / "base.yaml").write_text(TEXT.format(name="far"))
    (tmp_path / "base.yaml").write_text(TEXT.format(name="near"))
    (tmp_path / "lnk").symlink_to(tmp_path / "far" / "deep")
    (tmp_path / "e.yaml").write_text("extends: lnk/../base.yaml\n")
    monkeypatch.chdir(tmp_path)
    assert load("e.yaml", ()).experiment.name == "far"


def test_a_circle_over_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").symlink_to(tmp_path)
    (tmp_path / "e.yaml").write_text("extends: here/../" + tmp_path.name + "/here/e.yaml\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"goes in a circle: e\.yaml → here/"):
        load("e.yaml", ())
