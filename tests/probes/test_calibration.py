"""Does what calibrates a device time what it says, and end by itself when nobody reads?"""

import io
import json
import os
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

from broadgauge.messages.model_shape import GptShape  # noqa: E402
from broadgauge.probes.calibration.__main__ import main, measure  # noqa: E402
from broadgauge.probes.calibration.shapes import (  # noqa: E402
    AttentionShape,
    Choice,
    Gemm,
    Training,
    choice,
)
from broadgauge.probes.calibration.timing import (  # noqa: E402
    FEWEST_SAMPLES,
    time_call,
    timing_of,
)
from broadgauge.probes.devices import CpuDevice  # noqa: E402
from broadgauge.running.calibration.device import compute_of  # noqa: E402
from broadgauge.specs.machines.system import Compute  # noqa: E402

pytestmark = pytest.mark.measuring
SMALL = Choice(
    gemms=(
        Gemm(dtype="float32", tokens=64, inputs=64, outputs=64),
        Gemm(dtype="float32", tokens=512, inputs=256, outputs=1024),
        Gemm(dtype="bfloat16", tokens=8, inputs=8, outputs=8),
    ),
    attention=(
        AttentionShape(dtype="float32", batch=1, heads=2, head_dim=8, seq_len=16),
        AttentionShape(dtype="float32", batch=4, heads=4, head_dim=32, seq_len=256),
    ),
    copy_bytes=(2**16, 2**24),
    optimizer=((2**10, 4), (2**21, 4)),
    trainings=(
        Training(
            model=GptShape(layers=1, hidden=16, heads=2, vocabulary=256, seq_len=8),
            dtype="float32",
            batch=1,
        ),
    ),
    budget_s=0.01,
)


@pytest.fixture(scope="module")
def measured() -> tuple[Compute, str]:
    said = io.StringIO()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a rank on a core: threads that wait for each other measure that
    try:
        compute, notes = measure(CpuDevice(), SMALL, said)
    finally:
        torch.set_num_threads(threads)
    assert notes == []
    return compute, said.getvalue()


def test_everything_that_was_chosen_is_measured(measured):
    compute, said = measured
    assert len(compute.gemms) == len(SMALL.gemms)
    assert len(compute.attention) == len(SMALL.attention)
    assert [copy.size_bytes for copy in compute.copies] == list(SMALL.copy_bytes)
    assert [each.parameters for each in compute.optimizer] == [2**10, 2**21]
    assert len(compute.steps) == 1
    assert [json.loads(line)["doing"] for line in said.splitlines()][:2] == [
        "products, 1 of 3",
        "products, 2 of 3",
    ]


def test_every_figure_has_its_spread(measured):
    """Quartiles around the median, of samples enough, on any machine."""
    compute, _ = measured
    timings = [
        *(timing for gemm in compute.gemms for timing in (gemm.forward, gemm.backward)),
        *(each.forward for each in compute.attention),
        *(each.time for each in (*compute.copies, *compute.optimizer)),
        *(compute.launch.operation, compute.launch.layer_forward),
    ]
    for timing in timings:
        assert 0 < timing.low_s <= timing.median_s <= timing.high_s
        assert timing.repetitions >= FEWEST_SAMPLES


@pytest.mark.measured
def test_what_is_a_thousand_times_the_work_takes_longer(measured):
    """Orders only: the machine may be busy."""
    compute, _ = measured
    small, large = compute.gemms[:2]
    assert large.forward.median_s > 3 * small.forward.median_s
    assert compute.attention[1].forward.median_s > compute.attention[0].forward.median_s
    assert compute.copies[1].time.median_s > 3 * compute.copies[0].time.median_s
    assert compute.optimizer[1].time.median_s > 3 * compute.optimizer[0].time.median_s
    assert compute.launch.layer_forward.median_s > compute.launch.operation.median_s


PLANTED_S = 0.004


@pytest.fixture(scope="module")
def planted():
    return time_call(lambda: time.sleep(PLANTED_S), CpuDevice(), budget_s=0.02)


def test_a_planted_duration_is_not_missed(planted):
    """A sleep is never shorter than it says."""
    assert PLANTED_S <= planted.low_s <= planted.median_s <= planted.high_s
    assert planted.repetitions >= FEWEST_SAMPLES


@pytest.mark.measured
def test_a_planted_duration_is_found(planted):
    assert planted.median_s < 10 * PLANTED_S


def test_quartiles_are_those_of_the_samples():
    timing = timing_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (timing.low_s, timing.median_s, timing.high_s) == (2.0, 3.0, 4.0)
    assert timing_of([1.23456]).median_s == 1.235


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_chosen_spans_what_the_examples_train(device):
    chosen = choice(device)
    assert 18 <= len(chosen.gemms) <= 40
    widths = sorted(each.inputs for each in chosen.gemms)
    least, most = (512, 8192) if device == "cuda" else (64, 1024)
    assert (widths[0], widths[-1]) == (least, most)
    assert len({training.model for training in chosen.trainings}) == 3


@pytest.mark.slow
def test_the_result_is_one_line_that_is_read_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("broadgauge.probes.calibration.__main__.choice", lambda _: SMALL)
    said = io.StringIO()
    assert main("cpu", said) == 0
    result = json.loads(said.getvalue().splitlines()[-1])
    assert compute_of(result["compute"]).gemms[0].tokens == 64
    assert result["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert result["threads"] == 1


@pytest.mark.slow
def test_it_ends_when_nobody_reads_any_more():
    read_end, write_end = os.pipe()
    command = [sys.executable, "-P", "-m", "broadgauge.probes.calibration"]
    child = subprocess.Popen(
        [*command, "cpu", str(write_end), "0"],
        pass_fds=(write_end,),
        stderr=subprocess.DEVNULL,
    )
    os.close(write_end)
    assert os.read(read_end, 100)
    os.close(read_end)
    assert child.wait(120) != 0
