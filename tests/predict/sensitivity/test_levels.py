"""Are levels the least squares of all equations, though only those of the rungs are solved?"""

import numpy as np
import pytest

from broadgauge.predict.sensitivity.levels import _two_way, _two_way_apart, levels_of


@pytest.mark.parametrize("seed", range(20))
def test_the_short_way_gives_what_the_plain_one_gives(seed: int) -> None:
    """Random weights, some of them none, as where launches failed."""
    rng = np.random.default_rng(seed)
    rungs, blocks = int(rng.integers(1, 7)), int(rng.integers(2, 30))
    values = rng.normal(size=(rungs, blocks))
    weights = rng.uniform(0.05, 1.0, size=(rungs, blocks))
    weights[1:, 1:] *= rng.random((rungs - 1, blocks - 1)) > 0.2
    short, plain = _two_way(values, weights), _two_way_apart(values, weights)
    for ours, theirs in zip(short, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_rungs_that_share_no_block_are_solved_the_plain_way() -> None:
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    values = np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 5.0, 6.0]])
    for ours, theirs in zip(
        _two_way(values, weights), _two_way_apart(values, weights), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_five_hundred_blocks_solve_as_many_equations_as_there_are_rungs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = []
    lstsq = np.linalg.lstsq

    def counting(matrix: np.ndarray, *rest: object, **more: object) -> object:
        sizes.append(matrix.shape)
        return lstsq(matrix, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(np.linalg, "lstsq", counting)
    rng = np.random.default_rng(1)
    levels_of((1 + 0.01 * rng.random((4, 500))).tolist())
    assert set(sizes) == {(4, 4)}
