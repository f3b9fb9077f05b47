"""How fast does nccl-tests find the same collectives, over the same nodes?"""
