"""Which nodes does the address map know, with all of the NICs that a job's pods have of it?"""

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.manifests.job import JobPods

MOST_NAMED_NODES = 256
"""In a pod's affinity: a term each, in every pod."""


def mapped_nodes(job: JobPods) -> list[str]:
    """In the map's order; empty: its pods have no address of the map."""
    devices = {each.device for each in job.attachments.interfaces if each.is_mapped}
    if job.address_map is None or not devices:
        return []
    has: dict[str, set[str]] = {}
    for row in parse_map(job.address_map.decode()):
        has.setdefault(row.host, set()).add(row.device)
    return [host for host, own in has.items() if devices <= own]
