"""docs/python.md: every block runs as it stands as a script, and in a real notebook kernel with one
launch for three.

Ranks are scripted, since what is shown is how it is asked and what comes back.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.M | re.S
)
FIRST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.api.scripted import stand_ins
for place, name, value in stand_ins():
    setattr(place, name, value)
"""


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 10


@pytest.mark.thorough
@pytest.mark.namespaces
def test_every_block_runs_in_a_script(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.api.scripted import stand_ins

    for place, name, value in stand_ins():
        monkeypatch.setattr(place, name, value)
    script = "\n".join(BLOCKS)
    exec(compile(script, "docs/python.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    for words in ("[9/9] train", "no regression", "did you mean `quickstart`?"):
        assert words in said
    assert len(list(empty_folder.glob("runs/*/report.html"))) == 1


@pytest.mark.slow
@pytest.mark.namespaces
def test_every_block_runs_in_a_notebook(empty_folder: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    blocks = [text.replace('"launches": 3', '"launches": 1') for text in BLOCKS]
    assert blocks != BLOCKS
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(text) for text in (FIRST, *blocks)]
    )
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": "."}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert {output.output_type for output in outputs} == {"stream", "execute_result"}
    assert {output.name for output in outputs if output.output_type == "stream"} == {"stdout"}
    shown = [output.data for output in outputs if output.output_type == "execute_result"]
    for data, words in zip(shown, ("my-training", "train 2x1", "llama3-8b"), strict=True):
        assert words in data["text/html"]
        assert words in data["text/plain"]
        assert data["text/plain"].count("\n") > 3
