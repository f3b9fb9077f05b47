"""What do the ranks' figures and the nodes' counters of one trial add up to?"""
