"""Proves agent/pod/topology.py: a topology file of another machine is told by its devices."""

from broadgauge.agent.pod.topology import topology_words

FILE = b"""\
<system version="1"><cpu numaid="0">
  <pci busid="0000:A3:00.0" class="0x020700"><nic/></pci>
  <pci busid="0000:a4:00.0" class="0x060400">
    <pci busid="0000:a5:00.0" class="0x030200"/><pci busid="0000:a6:00.0" class="0x030200"/>
  </pci>
</cpu></system>"""


def test_what_is_here_is_counted_and_what_isnt_is_named() -> None:
    assert topology_words(FILE, ["0000:a3:00.0", "0000:a5:00.0"]) == (
        "1 of 2 GPUs are here (not 0000:a6:00.0); 1 of 1 NICs are here"
    )


def test_a_file_of_another_machine_says_nothing_of_this_one() -> None:
    told = topology_words(FILE, ["0000:00:01.0"])
    assert told.endswith("so that it is another machine's, and says nothing of this one")
    assert "0 of 2 GPUs are here" in told


def test_a_file_without_devices_or_without_form_is_told() -> None:
    assert topology_words(b"<system/>", []) == "0 of 0 GPUs are here; 0 of 0 NICs are here"
    assert "is no XML" in topology_words(b"<system", [])
