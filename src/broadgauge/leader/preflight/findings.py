"""What is found by a preflight, and which machines would have to go? No I/O."""

from collections import Counter
from collections.abc import Iterator, Sequence

from broadgauge.leader.preflight.checked import Checked
from broadgauge.leader.preflight.machines import of_clocks, of_gpus, of_software
from broadgauge.leader.preflight.networks import of_networks
from broadgauge.messages.preflight import PreflightFinding

_ORDER = ("fails", "differs", "unknown")


def findings_of(checked: Checked) -> tuple[PreflightFinding, ...]:
    """Those that stop launches first."""
    found = [
        *_of_silent(checked),
        *of_networks(checked),
        *of_software(checked),
        *of_clocks(checked),
        *of_gpus(checked),
    ]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.kind)))


def failing_of(findings: Sequence[PreflightFinding], num_machines: int) -> tuple[int, ...]:
    """Machines without which nothing fails, and all that are left were looked at: of pairs the one
    that is in most of them first, and of two equal ones the later, as the first leads. Where only
    one would be left nobody can tell which it is that fails: then those that fail alone."""
    left = {each for finding in findings if finding.kind != "differs" for each in finding.agents}
    found = {each[0] for each in left if len(each) == 1}
    alone = tuple(sorted(found))
    left = {each for each in left if not found & set(each)}
    while left:
        counts = Counter(agent for each in left for agent in each)
        worst = max(counts, key=lambda agent: (counts[agent], agent))
        found.add(worst)
        left = {each for each in left if worst not in each}
    return tuple(sorted(found)) if num_machines - len(found) > 1 else alone


def _of_silent(checked: Checked) -> Iterator[PreflightFinding]:
    for agent, why in sorted(checked.silent.items()):
        text = f"{checked.name(agent)} was not checked: {why}"
        yield PreflightFinding(kind="unknown", text=text, agents=((agent,),))
