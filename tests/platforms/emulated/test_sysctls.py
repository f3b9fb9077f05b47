"""Is what is written to the kernel's settings what it reads?"""

from pathlib import Path

import pytest

from broadgauge.agent.emulated import sysctls
from broadgauge.agent.emulated.sysctls import keep_packets_in_order


@pytest.fixture
def mask_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the kernel's own; its folder exists."""
    monkeypatch.setattr(sysctls, "_ROOT", tmp_path)
    (tmp_path / "core").mkdir()
    return tmp_path / "core/rps_default_mask"


@pytest.mark.parametrize(
    ("cores", "mask"),
    [
        ((0, 1), "00000003"),
        ((3, 1), "0000000a"),
        ((0, 33), "00000002,00000001"),
        ((64, 65), "00000003,00000000,00000000"),
    ],
)
def test_cores_are_written_as_the_kernel_reads_them(
    mask_file: Path, cores: tuple[int, ...], mask: str
) -> None:
    assert keep_packets_in_order(cores) == ()
    assert mask_file.read_text() == mask


def test_one_core_has_no_other_to_be_overtaken_on(mask_file: Path) -> None:
    assert keep_packets_in_order((5,)) == ()
    assert not mask_file.exists()


def test_a_kernel_without_it_is_told_of(mask_file: Path) -> None:
    mask_file.mkdir()
    [warning] = keep_packets_in_order((0, 1))
    assert "rps_default_mask" in warning
    assert "Linux 6.3" in warning
