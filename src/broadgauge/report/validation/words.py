"""The words of docs/validation.md that no table changes."""

INTRODUCTION = """\
Generated in `references/` by
`broadgauge validate {name} --markdown --peer Calculon=calculon-step-times.csv`;
a test holds it current. Nobody edits it, or a published value, by hand.

{rows} published step times of whole trainings are predicted from what their authors say of model,
settings and cluster. Constants of the predictor that were fitted are fitted without the source that
is scored: `validate` refuses anything else. Errors are predicted / measured − 1, in percent.
Sources that share a cluster or a code base (three of fms-fsdp, two of llm-foundry) are left out one
at a time, so each of them is helped by the others. Priors, framework styles and the classes of
intervals were set by people who knew the table (docs/decisions/0009 says what that is worth).
Repeats of one configuration spread by 6 % (median) and 27 % (P90), so nothing can be right within
about 3 %.
"""

MOVED = """\
Changes of the predictor's structure, and what "Nothing calibrated" said before and after (rows;
their 80 % interval; pairs in order; mean over sources). Published values stayed as they were.

| change | MAPE | in 80 % | order | mean over sources |
| --- | --- | --- | --- | --- |
| before | 13.9 | 82.4 | 88.9 | 18.7 |
| sharded layers wait for those before; constants fitted again | 13.8 | 82.5 | 88.1 | 18.7 |
| wider where few have measured; links no surer than ±a third | 13.8 | 83.4 | 88.1 | 18.7 |

The pairs that turned round are all of BigScience JeanZay V100: with tensor ranks it is predicted
39 % too fast and not 42, and without, on hosts that offload and that nobody describes, 41 to 51 as
before. `further-training.csv`, on which nothing is fitted (173 rows read, of eight sources): MAPE
31.1, then 30.2 by the first change, then 30.4 with pipelines as slow as their longest stage; in
80 % 49, 51, then 81 by the second.
"""

DEFINITIONS = """\
- **MAPE, median, P90, worst** are of the absolute error; **bias** is the mean signed one, + for
  predicted too slow. A mean over rows is dominated by sources with many rows, so the mean over
  sources stands beside it.
- **in 80 %**: measured times inside the 80 % interval.
- **order**: of two settings of one source, for the same model on as many of the same GPUs, whose
  measured times a token differ by more than 10 %, the faster one is named. Repeats of a setting are
  taken together (geometric mean); equal predictions name nobody.
- **scaling**: mean absolute error of the scaling efficiency. A series has one source and
  configuration, and either the same batch a GPU or the same global batch; its fewest nodes are 1.
- **Recomputation**: rows whose stated settings need more memory than their GPUs have are taken with
  as many layers recomputed as make them fit; they ran.
- **Flags** are the table's own: inferred dimensions or networks, CPU offload, contradictory
  repeats.
- **Calibration**: a system is one source's GPU, framework and arithmetic. Rows are chosen without
  their step times: each time the one after which the predictions of all rows of its group would be
  least uncertain, by the model's own slopes and by how far a row speaks for kernels of like sizes
  and of its way of training (V-optimal design); ties go to the earlier line. At most half of a
  group calibrates. Those rows are not scored.
"""

HARD_ROWS = """\
What the rows of `measured-training.csv` themselves say of the largest errors:

- **BigScience JeanZay V100**: one configuration took 118 and 225 s on different days, and 30 of
  its 72 rows offload to CPUs whose memory and PCIe are not described. The table says InfiniBand of
  400 Gbit/s; the cluster has four adapters of Omni-Path, of which NCCL used one (54 Gbit/s out of
  each of 16 nodes in an all-reduce, by the authors' own measurement).
- **NVIDIA DeepLearningExamples**: PyTorch's BERT rows at 512 tokens imply 69 to 73 % of an A100's
  fp16 peak without flash attention, where the same source's rows at 128 tokens reach 46 to 48 %:
  512 is the most a sequence may have (README, January 2022: binned pretraining, bins of 64).
- **Qwen fine-tune profile**: full fine-tuning of 1.8B parameters takes 2.1 to 2.3 s a step from 256
  to 2,048 tokens; what costs that is in no column. Two nodes with ZeRO-2 state no network.
- **maknee/SkyPilot on Nebius**: two rows. "10 Gbit/s" carried 13, and 3,200 Gbit/s of InfiniBand
  160, by the article's own reduce-scatter; a row of the table has the nominal rates alone.
- **vTrain ground truth**: small models wait for launches, 3.4 to 3.8 ms a layer and micro-batch on
  its hosts. No other source tells what a launch costs in Megatron-DeepSpeed; a measurement on one
  other host does (docs/measurements.md).
- **Goal 4, several nodes**: vTrain's multi-node rows are not in this table.
"""

PEERS = """\
The rule divides model FLOPs by 45 % of the GPUs' peak. Calculon (Isaev et al., SC 2023) gets its
own system files with the row's GPUs a node, nominal rate and memory rate; it has no words for
sharded parameters, encoders, LoRA or other GPUs (`scripts/against_calculon.py` counts the rows by
reason). Neither states an interval. Broadgauge is uncalibrated here, with constants fitted without
the source.
"""

ARTICLES = """\
`broadgauge validate` without a file scores the tables of five articles, which are shipped with the
package. Rows of a series that calibrate are not scored; every other published figure is predicted
by the same predictor, or listed with the reason.
"""
