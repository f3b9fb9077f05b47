"""All rules that conclude something of several lines, in the order of their subjects."""

from broadgauge.doctor.log.conclusions.accelerate import fsdp_not_used
from broadgauge.doctor.log.conclusions.collectives import (
    different_collectives,
    nobody_through,
    ranks_out_of_step,
)
from broadgauge.doctor.log.conclusions.conclusion import ConclusionRule
from broadgauge.doctor.log.conclusions.differences import (
    adapters_differ,
    channels_differ,
    interfaces_differ,
    networks_differ,
    plugins_differ,
    settings_differ,
    versions_differ,
)
from broadgauge.doctor.log.conclusions.distances import nics_far, nvlink_lost
from broadgauge.doctor.log.conclusions.driver import driver_versions
from broadgauge.doctor.log.conclusions.gdr import gdr_mixed, gdr_off, gdr_too_far, gdr_unknown
from broadgauge.doctor.log.conclusions.gids import gid_is_link_local, gids_of_two_kinds
from broadgauge.doctor.log.conclusions.init import fell_silent, init_not_completed, long_init
from broadgauge.doctor.log.conclusions.members import members_missing
from broadgauge.doctor.log.conclusions.mesh import mesh_between
from broadgauge.doctor.log.conclusions.mixed_adapters import lost_beside_infiniband
from broadgauge.doctor.log.conclusions.network_choice import (
    network_chosen,
    other_adapters,
    rdma_not_used,
    sockets_for_want,
)
from broadgauge.doctor.log.conclusions.nodes import nodes_are_hosts
from broadgauge.doctor.log.conclusions.parallelism import few_channels
from broadgauge.doctor.log.conclusions.paths import nvls_not_used, p2p_not_used
from broadgauge.doctor.log.conclusions.pcie import pcie_links_fail
from broadgauge.doctor.log.conclusions.plugins import (
    plugin_failed,
    plugin_missing,
    plugin_unloadable,
)
from broadgauge.doctor.log.conclusions.port_events import ports_went_down
from broadgauge.doctor.log.conclusions.ports import packets_are_small, ports_without_link
from broadgauge.doctor.log.conclusions.sockets import few_streams, wrong_interface
from broadgauge.doctor.log.conclusions.torch_ranks import rank_behind, waits_for_preparing
from broadgauge.doctor.log.conclusions.variables import variables_set

RULES: tuple[ConclusionRule, ...] = (
    network_chosen,
    rdma_not_used,
    sockets_for_want,
    plugin_missing,
    plugin_unloadable,
    plugin_failed,
    variables_set,
    other_adapters,
    few_streams,
    wrong_interface,
    networks_differ,
    versions_differ,
    plugins_differ,
    interfaces_differ,
    settings_differ,
    channels_differ,
    gdr_mixed,
    gdr_off,
    gdr_too_far,
    gdr_unknown,
    p2p_not_used,
    nvls_not_used,
    nodes_are_hosts,
    few_channels,
    init_not_completed,
    long_init,
    fell_silent,
    rank_behind,
    nobody_through,
    different_collectives,
    ranks_out_of_step,
    members_missing,
    waits_for_preparing,
    ports_without_link,
    packets_are_small,
    ports_went_down,
    gids_of_two_kinds,
    gid_is_link_local,
    lost_beside_infiniband,
    pcie_links_fail,
    driver_versions,
    nvlink_lost,
    nics_far,
    mesh_between,
    adapters_differ,
    fsdp_not_used,
)
