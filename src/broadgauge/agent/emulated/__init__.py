"""What turns this one machine into a cluster of nodes? Kernel namespaces, veth pairs and HTB.

Everything here but `ability` runs inside the supervisor of an emulated cluster.
"""
