"""How are dollars, and the days of a whole training, written?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which brings the catalog, and tables of runs do without
    from broadgauge.predict.answering.cost import WholeTraining

UNKNOWN = "unknown"
DAY_S = 86_400.0
HOUR_S = 3600.0
FEWEST_DAYS = 2
LEAST_USD = 0.001
"""What is less is said to be."""
_TOKEN_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def usd_words(usd: float | None) -> str:
    """`$3.14`, `$67.4`, `$12,300`, `$1.23M`: three digits that count."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < LEAST_USD:
        return f"<${LEAST_USD:g}"
    if usd >= 999_500:
        return f"${_three_digits(usd / 1e6)}M"
    return f"${_three_digits(usd)}"


def days_words(seconds: float) -> str:
    """`12.3 days`; hours below two days, minutes below two hours."""
    if seconds >= FEWEST_DAYS * DAY_S:
        return f"{_three_digits(seconds / DAY_S)} days"
    if seconds >= 2 * HOUR_S:
        return f"{_three_digits(seconds / HOUR_S)} h"
    return f"{_three_digits(seconds / 60)} min"


def tokens_title(tokens_count: float) -> str:
    """`1.5T tokens`, as people write them."""
    for factor, unit in _TOKEN_UNITS:
        if tokens_count >= factor:
            return f"{tokens_count / factor:.4g}{unit} tokens"
    return f"{tokens_count:,.0f} tokens"


def whole_cells(whole: "WholeTraining") -> tuple[str, str, str, str]:
    """Time and its 80 % interval, cost and its own."""
    time, usd = whole.time_s, whole.usd
    days = days_words(time.value), _range(days_words(time.low), days_words(time.high))
    if usd is None:
        return (*days, UNKNOWN, "")
    return (*days, usd_words(usd.value), _range(usd_words(usd.low), usd_words(usd.high)))


def _range(low: str, high: str) -> str:
    """`30.1 to 40.2 days`: a unit of both stands once."""
    number, _, unit = low.partition(" ")
    same = f" {unit}" if unit and high.endswith(f" {unit}") else None
    return f"{number if same else low} to {high}"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        rounded = float(f"{value:.3g}")
        return f"{rounded:,.0f}"
    return f"{value:.3g}"
