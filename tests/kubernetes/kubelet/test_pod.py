"""Proves pod.py: an event that was on its way when a patch was answered takes nothing back."""

from tests.kubernetes.kubelet.pod import is_older


def test_an_earlier_state_of_a_pod_is_told_from_a_later_one() -> None:
    """As numbers: `99` is before `100`."""
    earlier, later = ({"metadata": {"resourceVersion": each}} for each in ("99", "100"))
    assert is_older(earlier, later)
    assert not is_older(later, earlier)
    assert not is_older(later, later)
