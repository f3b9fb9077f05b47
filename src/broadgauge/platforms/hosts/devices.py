"""What have the hosts of an experiment for ranks to run on?"""

from collections.abc import Sequence

from broadgauge.agent.facts import HostFacts
from broadgauge.specs.machines.hosts import Host
from broadgauge.specs.platforms import Devices, PythonWithoutTorch


def hosts_devices(hosts: Sequence[Host], facts: Sequence[HostFacts]) -> Devices:
    """As much as the host with the least of each has."""
    return Devices(
        place="a host" if len(facts) > 1 else facts[0].hostname,
        num_gpus=min(len(each.gpus) for each in facts),
        num_cores=min(each.cores for each in facts),
        are_shared=False,
        most_nodes=len(facts),
        finds_networks=True,
        without_torch=tuple(
            PythonWithoutTorch(
                python=f"{host.python} ({each.python})",
                host=host.ssh,
                field=f"hosts[{number}].python",
            )
            for number, (host, each) in enumerate(zip(hosts, facts, strict=True))
            if each.torch is None
        ),
    )
