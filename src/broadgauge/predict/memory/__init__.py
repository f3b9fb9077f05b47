"""Does a training fit into its GPUs?"""
