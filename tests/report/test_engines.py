"""Is what torch and nccl-tests found of the same collectives said on screen and in the page?"""

import io
import re
from html import unescape

from rich.console import Console
from tests.advise.test_engines import LARGE, both

from broadgauge.analysis.analyse import analysed
from broadgauge.report.page.html import render
from broadgauge.report.terminal.printing import print_closing_table

CONFIRMED = "nccl-tests confirms torch: all_reduce"


def test_the_comparison_of_engines_is_shown() -> None:
    run = both([1.0, 1.01, 1.0], [1.0, 1.0, 1.01], (LARGE,))
    console = Console(file=io.StringIO(), width=120)
    print_closing_table(analysed(run), console)
    assert isinstance(console.file, io.StringIO)
    assert CONFIRMED in " ".join(console.file.getvalue().split())
    assert CONFIRMED in unescape(re.sub(r"<[^>]+>", " ", render(analysed(run))))
