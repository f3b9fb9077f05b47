"""Is `nvidia-smi topo -m` read: a GPU without NVLink among others, NICs that are far?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding, Severity

UNDERLINED = "\x1b[4m{}\x1b[0m"


def table(*, lost: int | None = None, near: str = "PIX", num_gpus: int = 4) -> str:
    names = [*(f"GPU{n}" for n in range(num_gpus)), "NIC0", "NIC1"]
    head = UNDERLINED.format(
        "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    )
    rows = [head]
    for a in range(num_gpus):
        cells = []
        for b in range(num_gpus):
            way = "SYS" if lost in (a, b) else "NV18"
            cells.append(" X " if a == b else way)
        cells += [near if a < num_gpus // 2 else "SYS", "SYS"]
        rows.append("\t".join([f"GPU{a}", *cells, "0-31", "0", "N/A"]))
    rows.append("\t".join(["NIC0", *["SYS"] * num_gpus, " X ", "SYS", "", ""]))
    legend = "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\nNIC Legend:\n\n"
    return "\n".join(rows) + f"\n{legend}  NIC0: mlx5_0\n  NIC1: mlx5_1\n"


def found(text: str) -> dict[str, Finding]:
    return {each.rule: each for each in log_findings(read_text(text))}


def test_a_healthy_table_says_nothing() -> None:
    reading = read_text(table())
    (read,) = reading.distances
    assert read.distances["GPU0", "GPU1"] == "NV18"
    assert read.distances["GPU1", "NIC0"] == "PIX"
    assert read.nic_names == {"NIC0": "mlx5_0", "NIC1": "mlx5_1"}
    assert log_findings(reading) == ()


def test_a_gpu_without_nvlink_among_others() -> None:
    told = found(table(lost=2))["nvlink-lost"]
    assert told.severity is Severity.WARNING
    assert "no NVLink joins GPU2" in told.symptom


def test_a_machine_without_nvlink_lost_none() -> None:
    assert "nvlink-lost" not in found(table().replace("NV18", "PHB"))


def test_nics_that_are_far_are_a_note() -> None:
    told = found(table(near="NODE"))["nics-far"]
    assert told.severity is Severity.INFO
    assert "(mlx5_0 and mlx5_1)" in told.symptom


def test_tables_of_two_hosts() -> None:
    assert len(read_text(table() + table(lost=1)).distances) == 2
