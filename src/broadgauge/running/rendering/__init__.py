"""From an experiment to the files that run it on a cluster, whoever applies them."""
