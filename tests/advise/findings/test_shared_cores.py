"""Is a machine that others use said so, by what a trial would be judged by, and an idle one not?"""

import pytest

from broadgauge.advise.findings.shared_cores import shared_now
from broadgauge.advise.limits import (
    FOREIGN_CPU_S,
    FOREIGN_ELAPSED_S,
    FOREIGN_RATIO,
    STOLEN_RATIO,
)
from broadgauge.agent.taken_cores import TakenCores


def taken(foreign: float, stolen: float = 0.0, *, s: float = 0.5, cores: int = 4) -> TakenCores:
    return TakenCores(
        foreign_busy_ratio=foreign, stolen_ratio=stolen, elapsed_s=s, cores_count=cores
    )


def test_who_uses_how_much_is_said_and_what_it_means() -> None:
    assert list(shared_now({"": taken(0.604, 0.2)})) == [
        "other programs use 60 % of the cores: expect wide intervals",
        "the hypervisor gives others 20 % of the cores: expect wide intervals",
    ]


def test_each_busy_machine_is_named() -> None:
    machines = {"gpu1": taken(0.3), "gpu2": taken(0.0), "gpu3": taken(0.0, 0.07)}
    assert list(shared_now(machines)) == [
        "other programs use 30 % of gpu1's cores: expect wide intervals",
        "the hypervisor gives others 7 % of gpu3's cores: expect wide intervals",
    ]


@pytest.mark.parametrize(
    "idle",
    [
        taken(0.0),
        taken(FOREIGN_RATIO, STOLEN_RATIO),
        taken(0.9, 0.9, s=FOREIGN_ELAPSED_S * 0.99),
        taken(0.3, s=0.3, cores=1),  # nine of the kernel's ticks, which may be chance
    ],
)
def test_what_no_trial_would_be_marked_for_is_not_said(idle: TakenCores) -> None:
    assert FOREIGN_CPU_S > 0.3 * 0.3
    assert list(shared_now({"": idle})) == []


def test_just_above_it_is_said() -> None:
    assert len(list(shared_now({"": taken(FOREIGN_RATIO + 1e-6, STOLEN_RATIO + 1e-6)}))) == 2
