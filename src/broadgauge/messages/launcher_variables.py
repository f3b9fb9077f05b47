"""Which variables does a launcher set for each rank? One list, for two places.

An experiment may not set them, and what the tool inherited of them (it may itself run under
torchrun or mpirun) is kept from its ranks. Slurm's stay: they tell a job's id and scratch folder,
and no library takes a rank from them where torchrun's own are set.
"""

TORCHRUN = frozenset(
    {
        *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME"),
        *("MASTER_ADDR", "MASTER_PORT"),
    }
)
"""Source: LocalElasticAgent._start_workers of torch 2.11,
torch/distributed/elastic/agent/server/local_elastic_agent.py."""
PREFIXES = (
    "TORCHELASTIC_",
    *("OMPI_", "PMI_", "PMIX_"),
    "BROADGAUGE_",
)
"""Of torchrun's agent, of MPI's launchers (Open MPI, MPICH and Slurm's, PMIx), and our own."""

PREPARED = frozenset({"BROADGAUGE_MODEL", "BROADGAUGE_DATASET", "BROADGAUGE_PREPARED"})
"""Where a volume has what was fetched onto it for the ranks."""


def is_set_by_a_launcher(name: str) -> bool:
    """`RANK` is, `AWS_ROLE_ARN` and `LOCAL_CACHE_DIR` are not."""
    return name in TORCHRUN or name.startswith(PREFIXES)


def is_kept_from_ranks(name: str) -> bool:
    """Of what was inherited: all that a launcher sets, but where a model and data set are."""
    return is_set_by_a_launcher(name) and name not in PREPARED
