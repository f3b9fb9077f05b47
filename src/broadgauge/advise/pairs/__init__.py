"""Which link between two nodes, or which node, is slower than the others?"""
