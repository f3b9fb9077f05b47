"""Which machine, NIC or pair is named, and which would have to go? By what agents might say."""

from collections.abc import Sequence
from dataclasses import replace

from broadgauge.leader.preflight.checked import Checked
from broadgauge.leader.preflight.findings import failing_of, findings_of
from broadgauge.messages.leader import ClockReading
from broadgauge.messages.preflight import (
    CheckedNic,
    GpuState,
    NetworkHere,
    PairResult,
    PreflightFinding,
    PreflightOpened,
    SoftwareHere,
)

HERE = SoftwareHere(python="3.12.3", torch="2.11.0", nccl="2.28.9")
H100 = GpuState(index=0, model="NVIDIA H100 80GB HBM3", memory_bytes=80 * 10**9, used_bytes=10**8)


def nic(
    agent: int, number: int = 0, mtu_bytes: int = 9000, speed_mbps: int = 100_000
) -> CheckedNic:
    return CheckedNic(
        agent=agent,
        network="fabric",
        nic=number,
        interface=f"net{number + 1}",
        address=f"10.0.{number}.{agent}",
        port=4000,
        mtu_bytes=mtu_bytes,
        speed_mbps=speed_mbps,
    )


def opened(*nics: CheckedNic, software: SoftwareHere = HERE, **here: object) -> PreflightOpened:
    network = NetworkHere(agent=nics[0].agent, network="fabric", **here)  # type: ignore[arg-type]
    return PreflightOpened(number=1, nics=nics, networks=(network,), software=software)


def calls(num: int, failing: Sequence[tuple[int, int]] = ()) -> list[PairResult]:
    """In both directions; of those that fail each is `caller, listener`."""
    return [
        PairResult(
            caller=a,
            listener=b,
            network="fabric",
            nic=0,
            trouble="no answer" if (a, b) in failing else None,
            path_mtu_bytes=9000,
        )
        for a in range(num)
        for b in range(num)
        if a != b
    ]


def checked(num: int, failing: Sequence[tuple[int, int]] = (), **more: object) -> Checked:
    said = {agent: opened(nic(agent)) for agent in range(num)}
    given = {"names": tuple(f"node-{n}" for n in range(num)), "opened": said} | more
    return Checked(results=calls(num, failing), **given)  # type: ignore[arg-type]


def both(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
    return [*pairs, *((b, a) for a, b in pairs)]


def words(found: Sequence[PreflightFinding]) -> list[str]:
    return [f"{each.kind}: {each.text}" for each in found]


def test_where_all_is_well_nothing_is_found() -> None:
    assert findings_of(checked(5)) == ()


def test_a_pair_is_named_by_both_and_the_later_goes() -> None:
    found = findings_of(checked(4, both((1, 2))))
    assert words(found) == [
        "fails: network fabric, NIC 0: node-1 at 10.0.0.1 and node-2 at 10.0.0.2 don't reach "
        "each other: no answer"
    ]
    assert (found[0].agents, failing_of(found, 4)) == (((1, 2),), (2,))


def test_of_two_machines_nobody_can_tell_which_it_is() -> None:
    found = findings_of(checked(2, both((0, 1))))
    assert failing_of(found, 2) == ()
    (silent,) = findings_of(checked(2, silent={1: "it did not answer in time"}))
    assert failing_of([silent], 2) == (1,)


def test_a_call_that_fails_in_one_direction_is_said_so() -> None:
    (found,) = findings_of(checked(4, [(3, 1)]))
    assert (
        found.text
        == "network fabric, NIC 0: node-3 at 10.0.0.3 does not reach node-1 at 10.0.0.1: no answer"
    )


def test_a_machine_that_nobody_reaches_is_named_once() -> None:
    found = findings_of(checked(8, both(*((5, n) for n in range(8) if n != 5))))
    assert words(found) == [
        "fails: network fabric, NIC 0: node-5 at 10.0.0.5 and all others don't reach each "
        "other: no answer"
    ]
    assert failing_of(found, 8) == (5,)


def test_a_network_that_carries_nothing_is_named_alone() -> None:
    found = findings_of(checked(6, both(*((a, b) for a in range(6) for b in range(a)))))
    assert words(found) == ["fails: network fabric, NIC 0: no machine reaches another: no answer"]
    assert failing_of(found, 6) == ()  # of a last one nobody knows that it is well


def test_many_pairs_are_counted_and_as_few_go_as_can() -> None:
    found = findings_of(checked(10, both(*((a, b) for a in (7, 8) for b in range(6)))))
    assert len(found) == 5
    assert found[-1].text == "network fabric, NIC 0: 8 more pairs don't reach each other"
    assert failing_of(found, 10) == (7, 8)


def test_what_a_network_lacks_is_said_once_for_all_that_lack_it() -> None:
    said = {
        agent: opened(nic(agent), problems=("no memory to lock",) if agent in (1, 2) else ())
        for agent in range(4)
    }
    found = findings_of(checked(4, opened=said))
    assert words(found) == ["fails: network fabric, node-1, node-2: no memory to lock"]
    assert failing_of(found, 4) == (1, 2)


def test_nics_that_are_not_alike() -> None:
    said = {
        agent: opened(nic(agent), nic(agent, 1), port_rates_gbps=(400.0,)) for agent in range(4)
    }
    said[2] = opened(nic(2))
    said[3] = opened(nic(3, mtu_bytes=1500), nic(3, 1, speed_mbps=10_000), port_rates_gbps=(200.0,))
    assert words(findings_of(checked(4, opened=said))) == [
        "differs: network fabric: NICs differ in MTU: 1500 on node-3; 9000 on node-0, node-1, "
        "node-2, node-3",
        "differs: network fabric: NICs differ in speed: 10 Gbit/s on node-3; 100 Gbit/s on node-0, "
        "node-1, node-2, node-3",
        "differs: network fabric: RDMA ports differ in rate: 200 Gbit/s on node-3; 400 Gbit/s on "
        "node-0, node-1",
    ]


def test_a_way_that_is_narrower_than_its_ends_is_no_failure() -> None:
    one = checked(3)
    results = [
        replace(each, path_mtu_bytes=1450) if (each.caller, each.listener) == (0, 2) else each
        for each in one.results
    ]
    assert words(findings_of(replace(one, results=results))) == [
        "differs: network fabric: MTU 9000 is set, and the way carries 1450 (node-0 to node-2)"
    ]


def test_software_that_is_not_alike() -> None:
    """What is not known of a machine is not compared, but torch that is not there."""
    said = {agent: opened(nic(agent)) for agent in range(4)}
    said[1] = opened(nic(1), software=replace(HERE, torch=None, nccl="2.27.3", python="3.11.7"))
    said[2] = opened(nic(2), software=replace(HERE, torch="2.10.0", nccl=None))
    found = findings_of(checked(4, opened=said))
    assert words(found) == [
        "fails: torch differs: 2.11.0 on node-0, node-3; none on node-1; 2.10.0 on node-2",
        "fails: NCCL differs: 2.28.9 on node-0, node-3; 2.27.3 on node-1",
        "differs: Python differs: 3.12.3 on node-0, node-2, node-3; 3.11.7 on node-1",
    ]
    torch, nccl, _ = found
    assert (torch.of, set(torch.agents)) == (
        "our own workloads",
        {(0, 1), (1, 3), (0, 2), (2, 3), (1, 2)},
    )
    assert (nccl.of, set(nccl.agents)) == ("NCCL", {(0, 1), (1, 3)})
    assert failing_of(found, 4) == (1, 2)


def test_over_rdma_tcp_has_to_reach_the_others_by_the_first_nic_alone() -> None:
    said = {n: opened(nic(n), nic(n, 1), is_rdma=True) for n in range(3)}
    one = checked(3, both((0, 2)), opened=said)
    second = [replace(each, nic=1) for each in one.results]
    found = findings_of(replace(one, results=[*calls(3), *second]))
    assert words(found) == [
        "differs: network fabric, NIC 1, by TCP: node-0 at 10.0.1.0 and node-2 at 10.0.1.2 "
        "don't reach each other: no answer"
    ]
    assert failing_of(found, 3) == ()


def test_what_was_not_tried_and_what_is_not_known_yet_fails_nothing() -> None:
    said = {n: opened(nic(n), unknown="no status yet" if n == 1 else None) for n in range(3)}
    one = checked(3, opened=said)
    results = [replace(each, is_tried=each.caller != 0) for each in one.results]
    found = findings_of(replace(one, results=results))
    assert words(found) == [
        "unknown: network fabric, node-1: no status yet",
        "unknown: network fabric: 2 calls were not tried in time",
    ]
    assert failing_of(found, 3) == ()


def test_machines_of_one_name_are_told_apart() -> None:
    (found,) = findings_of(replace(checked(3, [(2, 1)]), names=("a", "b", "b")))
    assert found.text.endswith(
        "b (node 2) at 10.0.0.2 does not reach b (node 1) at 10.0.0.1: no answer"
    )


def test_what_256_machines_fail_by_is_summed_up_soon() -> None:
    """The leader hears nobody meanwhile. Of as many pairs as that a list in a list takes hours."""
    dead = set(range(64))
    results = [
        replace(each, trouble="no answer" if {each.caller, each.listener} & dead else None)
        for each in calls(256)
    ]
    found = findings_of(replace(checked(2), names=tuple(map(str, range(256))), results=results))
    assert failing_of(found, 256) == tuple(range(64))


def test_a_clock_that_is_off_is_told_from_one_that_is_not_known_well() -> None:
    def reading(agent: int, offset_s: float, uncertainty_s: float = 0.001) -> ClockReading:
        return ClockReading(agent=agent, offset_s=offset_s, uncertainty_s=uncertainty_s)

    clocks = [reading(0, 0.0), reading(1, -2.5), reading(2, 0.04), reading(3, 0.3, 0.4)]
    assert words(findings_of(checked(5, clocks=clocks))) == [
        "differs: the clock of node-1 is 2.52 s behind the others' (± 1 ms): is NTP or chrony "
        "running there?",
        "unknown: the clock of node-4: no answer to the leader's question in time",
    ]


def test_of_two_clocks_nobody_can_tell_which_is_wrong() -> None:
    clocks = [ClockReading(agent=n, offset_s=3.0 * n, uncertainty_s=0.001) for n in range(2)]
    assert words(findings_of(checked(2, clocks=clocks))) == [
        "differs: the clocks of node-0 and node-1 are 3 s apart (± 2 ms): is NTP or chrony running "
        "there?"
    ]


def test_gpus_that_are_not_in_order() -> None:
    bad = replace(
        H100,
        index=3,
        used_bytes=12 * 10**9,
        uncorrected_errors_count=2,
        is_remapping_pending=True,
        has_remapping_failed=True,
        is_slowed_by=("heat",),
        is_split=True,
    )
    with_gpus = replace(HERE, gpu_driver="580.95.05", gpus=(H100, bad))
    said = {0: opened(nic(0), software=with_gpus), 1: opened(nic(1), software=with_gpus)}
    said[1] = opened(nic(1), software=replace(with_gpus, gpus=(H100, H100)))
    found = words(findings_of(checked(2, opened=said)))
    assert [text for text in found if "GPU 3" not in text] == []
    assert len(found) == 6
    assert "differs: node-0, GPU 3 (NVIDIA H100 80GB HBM3): it is slowed down before anything " in (
        "".join(found)
    )


def test_gpus_whose_state_nobody_tells_are_unknown() -> None:
    without = replace(HERE, gpu_driver="580.95.05", gpus=None)
    said = {agent: opened(nic(agent), software=without) for agent in range(1)}
    assert words(findings_of(checked(1, opened=said))) == [
        "unknown: the state of node-0's GPUs: nvidia-smi is not there, or does not answer"
    ]


def test_who_was_silent_is_said() -> None:
    found = findings_of(checked(3, silent={2: "it did not answer in time"}))
    assert words(found) == ["unknown: node-2 was not checked: it did not answer in time"]
    assert failing_of(found, 3) == (2,)
