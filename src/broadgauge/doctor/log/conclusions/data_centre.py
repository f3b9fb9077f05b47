"""Does the job run on GPUs of data centres, whose servers usually have NICs that do RDMA?"""

from broadgauge.doctor.log.facts import LogReading, Way
from broadgauge.doctor.log.gpu_names import is_of_data_centre

_RANKS_OF_SERVER = 8


def data_centre_signs(reading: LogReading) -> tuple[str, ...]:
    """What says so: the GPU's name, an NVSwitch, or eight GPUs of a host with P2P; empty: nothing.

    GeForce boards have no P2P (NVIDIA's driver), so eight that do are none.
    """
    named = sorted(filter(is_of_data_centre, reading.gpu_names))
    if named:
        return (f"GPUs: {', '.join(named[:3])}",)
    if reading.gpu_names:
        return ()
    communicators = reading.communicators.values()
    if any(c.has_nvls or c.num_nvls_channels for c in communicators):
        return ("NVLink SHARP is used: an NVSwitch joins the GPUs",)
    for each in communicators:
        local = max(each.local_ranks.values(), default=0)
        if local >= _RANKS_OF_SERVER and any(Way.P2P in ways for ways in each.paths.values()):
            return (f"{local} GPUs of a host reach each other by P2P",)
    return ()
