"""What would a run give on another network, on more nodes, split otherwise?"""
