"""From where on is a log conspicuous? Every threshold of a conclusion, with its reason."""

FEW_STREAMS = 4
"""TCP streams between two nodes. One stream carries 10 to 20 Gbit/s on one core, so up to four
don't fill a link of 100 Gbit/s. NCCL opens channels x threads x sockets; a NIC that it takes for
10 Gbit/s gives it two channels. Source: NVIDIA/nccl src/graph/search.cc and connect.cc (2.30.7)."""
DEFAULT_GBPS = 10.0
"""What NCCL takes an interface for whose speed it can't read. Source: src/transport/net_socket.cc
and src/misc/socket.cc, "Defaulting to 10 Gbps"."""
FEW_CHANNELS = 2
"""Channels between nodes. A search that finds a path for each NIC gives one or more a NIC, doubled
(src/graph/connect.cc); up to two on a fast network mean that it found little."""
FAST_GBPS = 100.0
"""An adapter that two channels do not fill: one channel is one queue pair and one proxy's work."""
LONG_INIT_S = 30.0
"""NCCL's own initialisation of some hundred ranks takes seconds, kernels and topology included.
Half a minute is a name that does not resolve, a lost packet's retries, or a rank that came late."""
LONG_BOOTSTRAP_S = 10.0
"""The bootstrap is a ring of small TCP messages: milliseconds a rank."""
INIT_S_PER_RANK = 0.02
"""What each rank may add to both limits above: the bootstrap's ring has as many steps."""
MANY_CORRECTED = 20
"""PCIe errors that the kernel corrected, in one log: a good link has none for days, and a single
one is no sign of anything."""
OTHERS_LINES = 200
"""So many later lines of the others in the same file, and a rank's log ended before theirs: ranks
do the same, and write their lines at about the same time."""
