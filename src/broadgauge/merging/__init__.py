"""What did one trial measure, all ranks' figures and the nodes' counters taken together?"""
