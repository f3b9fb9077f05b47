"""Proves that what docs/kubernetes.md shows of experiments renders, and that its table has every
attachment and profile."""

import re
from pathlib import Path
from typing import get_args

from tests.running.rendering.experiments import rendered
from tests.running.rendering.networks import with_files

from broadgauge.catalog.fabrics import known_fabrics
from broadgauge.specs.networks.ipam import IpamKind
from broadgauge.specs.networks.pod_networks import SecondaryKind

PAGE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text()
SHOWN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
REST = """
name: shown
cluster: {shapes: [SHAPES], device: cuda}
workloads: [{kind: collectives, ops: [all_reduce], sizes: [1 MiB]}]
"""


def test_each_experiment_shown_renders(tmp_path: Path) -> None:
    with_files(tmp_path)
    (tmp_path / "map.yaml").rename(tmp_path / "nodename_ip_mapping.yaml")
    for name in ("train.py", "tokenise.py"):
        (tmp_path / name).touch()
    assert len(SHOWN) > 1
    for text in SHOWN:
        shapes = "1x2, 2x2" if "networks:" in text else "1x2"
        whole = text if "workloads:" in text else f"{REST.replace('SHAPES', shapes)}{text}"
        assert rendered(tmp_path, text=whole).jobs


def test_every_attachment_way_to_an_address_and_profile_has_a_row() -> None:
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`([^`]+)`", row)}
    wanted = {*get_args(SecondaryKind), "pod", *get_args(IpamKind)}
    assert wanted | {each.name for each in known_fabrics()} <= named
