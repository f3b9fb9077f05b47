"""Which figure answers which claim? By the name that catalog/article_claims.yaml has."""

from collections.abc import Callable
from functools import partial

from broadgauge.catalog.articles import Articles
from broadgauge.predict.articles.recomputed import gpt2, gpudirect, network, skypilot
from broadgauge.predict.articles.recomputed.figure import Figure

L40S, H100 = network.L40S, network.H100

FIGURES: dict[str, Callable[[Articles], Figure]] = {
    "l40s-vnic-gain": partial(network.gain, system=L40S, network="vnic", other="pod", nodes=8),
    "l40s-gap-grows": network.least_step_of_the_gap,
    "l40s-vnic-efficiency": partial(network.efficiency, network="vnic", nodes=8),
    "l40s-pod-efficiency": partial(network.efficiency, network="pod", nodes=8),
    "h100-sriov-over-vnic": partial(
        network.over_network, system=H100, network="sriov", other="vnic", nodes=2
    ),
    "h100-rdma-over-sriov": partial(
        network.over_network, system=H100, network="sriov-rdma", other="sriov", nodes=2
    ),
    "h100-pod-speedup": partial(network.speedup, system=H100, network="pod", nodes=2),
    "h100-vnic-speedup": partial(network.speedup, system=H100, network="vnic", nodes=2),
    "h100-sriov-speedup": partial(network.speedup, system=H100, network="sriov", nodes=2),
    "h100-sriov-over-nominal": network.over_nominal,
    "granite-steps": network.optimizer_steps,
    "granite-samples": network.samples_in_a_batch,
    "granite-offload": network.offloaded_over_request,
    "a40-roce": partial(gpudirect.times_as_fast, slow="pod", fast="roce"),
    "a40-tcp": partial(gpudirect.times_as_fast, slow="pod", fast="tcp"),
    "a40-roce-over-tcp": partial(gpudirect.times_as_fast, slow="tcp", fast="roce"),
    "a40-pod-share": partial(gpudirect.share_lost, slow="pod", fast="roce"),
    "gpt2-small-two-gpus": partial(gpt2.speedup_of_two, one="e-15-1", two="e-15-2"),
    "gpt2-small-nodes": partial(gpt2.epochs_ratio, one="e-15-3", other="e-15-2"),
    "gpt2-large-nodes": partial(gpt2.epochs_ratio, one="e-15-6-2", other="e-15-5-3"),
    "gpt2-large-nvlink": partial(gpt2.speedup_of_two, one="e-15-4-1", two="e-15-5-3"),
    "gpt2-large-hdr": partial(gpt2.speedup_of_two, one="e-15-4-1", two="e-15-6-2"),
    "gpt2-batch": gpt2.batch_of_an_epoch,
    "gpt2-memory": gpt2.memory_of_two_nodes,
    "gpt2-model": gpt2.model_gbyte,
    "gpt2-epoch": gpt2.epoch_tbyte,
    "gpt2-nvlink-nominal": partial(gpt2.nominal_s, path="nvlink3"),
    "gpt2-hdr-nominal": partial(gpt2.nominal_s, path="hdr"),
    "gpt2-nvlink-one-way": partial(gpt2.one_way_s, path="nvlink3"),
    "gpt2-hdr-one-way": partial(gpt2.one_way_s, path="hdr"),
    "gpt2-half": gpt2.half_epoch_s,
    "gpt2-nvlink-by-rate": partial(gpt2.estimated_s, measured=False, path="nvlink3"),
    "gpt2-hdr-by-rate": partial(gpt2.estimated_s, measured=False, path="hdr"),
    "gpt2-nvlink-measured": partial(gpt2.estimated_s, measured=True, path="nvlink3"),
    "gpt2-hdr-measured": partial(gpt2.estimated_s, measured=True, path="hdr"),
    "gpt2-nvlink-by-speed": partial(gpt2.from_speed_s, path="nvlink3"),
    "gpt2-hdr-by-speed": partial(gpt2.from_speed_s, path="hdr"),
    "gpt2-nvlink-busbw": partial(gpt2.busbw, path="nvlink3", backend="nccl"),
    "gpt2-pcie-busbw": partial(gpt2.busbw, path="pcie4", backend="nccl"),
    "gpt2-hdr-busbw": partial(gpt2.busbw, path="hdr", backend="nccl"),
    "gpt2-eth-busbw": partial(gpt2.busbw, path="eth25", backend="nccl"),
    "gpt2-gloo-hdr-busbw": partial(gpt2.busbw, path="hdr", backend="gloo"),
    "gpt2-gloo-eth-busbw": partial(gpt2.busbw, path="eth25", backend="gloo"),
    "gpt2-gloo-hdr-seconds": partial(gpt2.seconds_by_speed, path="hdr", backend="gloo"),
    "gpt2-gloo-eth-seconds": partial(gpt2.seconds_by_speed, path="eth25", backend="gloo"),
    "gpt2-gloo-gain": gpt2.gloo_hdr_over_ethernet,
    "gpt2-elements": gpt2.bytes_by_ethernet,
    "gpt2-orders": gpt2.nvlink_over_hdr,
    "gpt2-hdr-share": partial(gpt2.line_share, path="hdr"),
    "gpt2-eth-share": partial(gpt2.line_share, path="eth25"),
    "gemma-by-step": skypilot.by_step,
    "gemma-by-total": skypilot.by_total,
    "gemma-eth-total": partial(skypilot.total_minutes, network="eth10"),
    "gemma-ib-total": partial(skypilot.total_minutes, network="infiniband"),
    "gemma-reduce-scatter": skypilot.by_reduce_scatter,
    "gemma-eth-rate": partial(skypilot.reduce_scatter_gbps, network="eth10"),
    "gemma-ib-rate": partial(skypilot.reduce_scatter_gbps, network="infiniband"),
    "nebius-ib": skypilot.nics_gbyte_per_s,
    "nebius-eth": skypilot.ethernet_gbyte_per_s,
    "batch-nvme": partial(skypilot.phases_ratio, phase="batch", slow="s3-mount", fast="local-nvme"),
    "batch-equal-rates": skypilot.batches_at_one_rate,
    "save-nvme": partial(skypilot.phases_ratio, phase="save", slow="s3-mount", fast="local-nvme"),
    "save-cached": partial(skypilot.phases_ratio, phase="save", slow="s3-mount", fast="s3-cached"),
    "save-against-rate": skypilot.save_against_rate,
    "save-bytes": partial(skypilot.saved_gbyte, slow="s3-mount", fast="shared-fs"),
    "save-share": skypilot.share_of_an_hour,
    "load-rate": partial(skypilot.load_gbyte_per_s, storage="s3-mount"),
    "one-storage": skypilot.is_one_storage,
    "load-choice": skypilot.durable_load_ratio,
    "load-fast-side": skypilot.fast_side_load_ratio,
    "end-to-end-0": partial(skypilot.end_to_end, saves=0),
    "end-to-end-1": partial(skypilot.end_to_end, saves=1),
}
