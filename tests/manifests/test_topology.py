"""Proves manifests/topology.py: what NCCL would read otherwise than an XML reader is refused."""

import pytest
from tests.running.rendering.networks import TOPOLOGY

from broadgauge.manifests.topology import check_topology
from broadgauge.specs.errors import InputError

GPU = '<pci busid="0000:01:00.0" class="0x030200"/>'
TWO_HOSTS = "".join(f'<cpu numaid="0" host_hash="0x{host}">{GPU}</cpu>' for host in (1, 2))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TOPOLOGY.encode("utf-16"), "is no UTF-8 text"),
        (TOPOLOGY.encode("utf-16-le"), "is no UTF-8 text: byte 1 is 0"),
        (f"<!DOCTYPE a []>{TOPOLOGY}".encode("utf-16-be"), "is no UTF-8 text: byte 0 is 0"),
        (b"\xef\xbb\xbf" + TOPOLOGY.encode(), "begins with a byte order mark"),
        (TOPOLOGY.replace(":01:", ":0A:").replace(":00:", ":0a:", 1).encode(),
         "two <pci> of the busid 0000:0a:00.0"),
        (f'<system version="1"><cpu>{GPU}</cpu>{GPU.replace(":01:", ":02:")}</system>'.encode(),
         "has 1 GPU (and 1 in no <cpu>, where it does not look), and a pod's ranks take 2"),
        (f'<system version="1">{TWO_HOSTS}</system>'.encode(), None),
    ],
)  # fmt: skip
def test_a_file_is_read_as_nccl_reads_it(content: bytes, words: str | None) -> None:
    """The last: of several hosts, as a GPU of each has the same busid."""
    if words is None:
        check_topology(content, "mine.xml", num_gpus=2)
        return
    with pytest.raises(InputError, match=r"kubernetes\.topology_file: mine\.xml ") as caught:
        check_topology(content, "mine.xml", num_gpus=2)
    assert words in str(caught.value)
