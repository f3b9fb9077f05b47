"""Which rates do published throughputs imply for the emulated networks of an example?

Prints what stands in the example's `networks`, for networks of which the article states no rate or
one that does not explain its throughput. Run it again after changing an example's workload, its
shapes or the predictor, and write what it prints into the example; a test compares the two.

    python scripts/inferred_rates.py [EXAMPLE …]
"""

import sys
import textwrap

from broadgauge.predict.articles.inferred import InferredRate, inferred_rates
from broadgauge.predict.articles.wanted_rates import WANTED
from broadgauge.running.experiments import load

COLUMNS = 100


def yaml_lines(found: InferredRate) -> list[str]:
    """Of one entry."""
    text = textwrap.wrap(found.words, COLUMNS - 6, break_long_words=False, break_on_hyphens=False)
    return [
        f"  - name: {found.wanted.network}",
        f"    rate_gbps: {found.rate_gbps:g} Gbit/s",
        "    rate_inferred_from: >-",
        *(f"      {line}" for line in text),
    ]


def main() -> None:
    for name in sys.argv[1:] or WANTED:
        print(f"# examples/{name}.yaml")
        for found in inferred_rates(load(name, []).experiment):
            print("\n".join(yaml_lines(found)))


if __name__ == "__main__":
    main()
