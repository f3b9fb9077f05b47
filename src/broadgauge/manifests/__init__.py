"""Which files run an experiment on a cluster, whoever applies them?"""
