"""Are these hosts what a run needs, and do they agree with each other? Asked before it begins."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from broadgauge.agent.facts import HOST_FACTS, HostFacts
from broadgauge.messages.codec import DecodeError
from broadgauge.platforms.hosts import bootstrap
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.machines.hosts import Host

MOST_AT_ONCE = 16
"""As an sshd lets so many come at once that have not logged in: 10 to 100 (MaxStartups)."""


def read_hosts(hosts: Sequence[Host]) -> tuple[HostFacts, ...]:
    """What is each of them? Raises PlatformError, which names all that can't be asked."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        found = list(pool.map(_read_or_error, hosts))
    errors = [each for each in found if isinstance(each, PlatformError)]
    if len(errors) > 1:
        told = "\n".join(f"- {error}" for error in errors)
        raise PlatformError(f"{len(errors)} of {len(hosts)} hosts can't be used:\n{told}")
    if errors:
        raise errors[0]
    return tuple(each for each in found if isinstance(each, HostFacts))


def _read_or_error(host: Host) -> HostFacts | PlatformError:
    try:
        return _read(host)
    except PlatformError as error:
        return error


def _read(host: Host) -> HostFacts:
    told = bootstrap.start(host.ssh, host.python, "facts", {})
    try:
        return HOST_FACTS(told)
    except DecodeError as error:
        raise PlatformError(f"{host.ssh}: what it says of itself can't be read: {error}") from error


def refuse_differences(hosts: Sequence[Host], facts: Sequence[HostFacts]) -> None:
    """Raises PlatformError where one machine stands twice, or two have other versions of torch.

    Ranks of two versions may hang or give other numbers.
    """
    seen: dict[str, Host] = {}
    for host, each in zip(hosts, facts, strict=True):
        first = seen.setdefault(each.machine_id, host)
        if first is not host:
            raise PlatformError(
                f"hosts: {first.ssh} and {host.ssh} are one machine ({each.hostname})",
                hint="each machine once: its ranks are `2x4`'s second number",
            )
    for name in ("torch", "nccl"):
        versions = {getattr(each, name): host for host, each in zip(hosts, facts, strict=True)}
        if len(versions) > 1:
            told = ", ".join(f"{host.ssh} has {version}" for version, host in versions.items())
            raise PlatformError(
                f"hosts: {name} differs: {told}",
                hint="`python:` of a host names the Python of the environment to use",
            )


def notes_on(hosts: Sequence[Host], facts: Sequence[HostFacts]) -> tuple[str, ...]:
    """What else differs, that a reader of the figures should know."""
    notes = []
    for name in ("python", "kernel", "cpu", "driver", "cores"):
        values = {getattr(each, name): host.ssh for host, each in zip(hosts, facts, strict=True)}
        if len(values) > 1:
            told = ", ".join(f"{host} {value}" for value, host in values.items())
            notes.append(f"hosts differ in {name}: {told}")
    return tuple(notes)
