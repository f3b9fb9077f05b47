"""An experiment with every kind of secondary network, beside which files may stand."""

from pathlib import Path

MAP = """\
# host:device:interface:ip
worker-0:ens13:net1:10.249.65.9
worker-0:ens14:net2:10.249.66.9
worker-1:ens13:net1:10.249.65.10
worker-1:ens14:net2:10.249.66.10
"""
TOPOLOGY = (
    '<system version="1"><cpu numaid="0">'
    + "".join(f'<pci busid="0000:0{i}:00.0" class="0x030200"/>' for i in range(2))
    + "</cpu></system>\n"
)
NETWORKS = """
name: all
kubernetes: {namespace: training, image: "registry.example/train:1", run_as_user: 1000}
cluster: {shapes: [1x2, 2x2], device: cuda}
networks:
  - {name: pod, rate_gbps: 1 Gbit/s, kubernetes: pod}
  - name: vnic
    rate_gbps: 2 Gbit/s
    nics_per_node: [1, 2]
    kubernetes:
      attachment: host-device
      devices: [ens13, ens14]
      ipam: {kind: address-map, map: map.yaml}
      transport: virtio
  - name: roce
    rate_gbps: 3 Gbit/s
    kubernetes:
      attachment: macvlan
      devices: ens8f0np0
      resources: rdma/rdma_shared_device_eth
      ipam: {kind: whereabouts, ranges: 192.168.2.0/24, gateway: 192.168.2.1}
      transport: [roce, tcp]
  - name: vf
    rate_gbps: 4 Gbit/s
    nics_per_node: nodes
    kubernetes:
      attachment: sriov
      resources: openshift.io/rail
      ipam: {kind: nv-ipam, pools: rail}
  - {name: l3, rate_gbps: 5, kubernetes: {attachment: ipvlan, devices: ens2, mode: l3,
     ipam: {kind: whereabouts, ranges: 10.30.0.0/24, exclude: 10.30.0.0/28}}}
  - {name: br, rate_gbps: 6, kubernetes: {attachment: bridge, devices: br0, mtu_bytes: 9000,
     ipam: {kind: whereabouts, ranges: 10.40.0.0/24}}}
  - {name: there, rate_gbps: 7, kubernetes: {attachment: existing, definitions: other/net}}
  - name: ib
    rate_gbps: 8 Gbit/s
    nics_per_node: 2
    kubernetes: {attachment: ib-sriov, resources: openshift.io/ib, transport: infiniband}
workloads: [{kind: collectives, ops: [all_reduce], sizes: [1 MiB]}]
"""


def with_files(folder: Path) -> Path:
    """The folder, with what the experiment names."""
    (folder / "map.yaml").write_text(MAP)
    (folder / "topo.xml").write_text(TOPOLOGY)
    return folder


FABRICS = """
name: clouds
kubernetes: {namespace: training, image: "registry.example/train:1", run_as_user: 1000,
             allocation: per_case}
cluster: {shapes: [2x8], device: cuda}
networks:
  - {name: hca, nics_per_node: [1, 8], kubernetes: {attachment: device-plugin, resources: rdma/ib,
     transport: infiniband}}
  - {name: efa, nics_per_node: 4, kubernetes: {attachment: device-plugin, profile: efa}}
  - name: tcpxo
    nics_per_node: 8
    kubernetes: {attachment: existing, profile: gpudirect-tcpxo,
                 definitions: [v1, v2, v3, v4, v5, v6, v7, v8]}
  - name: tcpx
    nics_per_node: 4
    kubernetes: {attachment: existing, profile: gpudirect-tcpx, definitions: [w1, w2, w3, w4]}
  - name: ibm
    kubernetes: {attachment: host-device, devices: enp163s0, profile: ibm-cluster-network,
                 resources: nvidia.com/roce, ipam: dhcp}
workloads: [{kind: collectives, ops: [all_reduce], sizes: [1 MiB]}]
"""
