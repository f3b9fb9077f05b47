"""What is one figure that was recomputed?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedFigure:
    """A figure that follows from published ones."""

    number: float
    """In `unit`, which is that of the claim that it answers."""
    unit: str = "×"
    how: str
    """The arithmetic with its figures, and our units where the article has others."""

    @property
    def words(self) -> str:
        """To four digits at most, with its unit."""
        digits = f"{self.number:,.0f}" if abs(self.number) >= 1000 else f"{self.number:.4g}"
        glue = "" if self.unit in ("", "×") else " "
        return f"{digits}{glue}{self.unit}"
