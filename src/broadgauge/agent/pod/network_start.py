"""What does a pod do about its network before anything is started?

It waits for the file in which Multus' status comes, finds the network, and says what it found.
The kubelet writes that file before Multus has annotated the pod, and again when it next looks at
the pod: seconds later, at most a minute or two.
Source: Kubernetes, "Downward API" (volumes are updated with the kubelet's sync period and cache).
"""

import time
from collections.abc import Callable

from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.found_nics import NoSuchNicError, find_nics
from broadgauge.agent.pod.network_words import describe, plain, refused
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.waiting_limits import waiting_limit_s

STATUS_LIMIT_S = waiting_limit_s(180.0)
"""For the annotation to be in the pod's file."""
LOOK_EVERY_S = 1.0
TELL_EVERY_S = 30.0

Say = Callable[[str], None]


class NoNetworkError(ValueError):
    """What was asked of the network isn't here."""


def network_variables(
    network: AskedNetwork, read: Callable[[], PodFacts], say: Say
) -> dict[str, str]:
    """What the ranks are told of it, beside what the user set. Raises NoNetworkError."""
    found, _ = find_network(network, read, say)
    problems = list(refused(found))
    if problems:
        raise NoNetworkError("\n".join(problems))
    return found.variables


def find_network(
    network: AskedNetwork,
    read: Callable[[], PodFacts],
    say: Say,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[ResolvedNetwork, PodFacts]:
    """What it is here, which is said, and the facts that it was found in; with `problems` it is
    not here as it was asked for."""
    facts = facts_with_nics(network, read, say, sleep=sleep)
    found = resolve(network, facts)
    for line in describe(found, facts):
        say(line)
    return found, facts


def facts_with_nics(
    network: AskedNetwork,
    read: Callable[[], PodFacts],
    say: Say,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    limit_s: float = STATUS_LIMIT_S,
) -> PodFacts:
    """As soon as the network's NICs can be told; at the limit as they are."""
    begun_s, told_s = clock(), None
    while True:
        facts, now_s = read(), clock()
        try:
            find_nics(network, facts)
        except NoSuchNicError as error:
            if facts.status is not None or not network.attachments:
                return facts
            if now_s - begun_s >= limit_s:
                say(f"no network status for {limit_s:g} s")
                return facts
            if told_s is None or now_s - told_s >= TELL_EVERY_S:
                told_s = now_s
                limit = f"{limit_s:g} s at most"
                say(plain(f"waiting for the pod's network status, {limit}: {error}"))
            sleep(LOOK_EVERY_S)
        else:
            return facts
