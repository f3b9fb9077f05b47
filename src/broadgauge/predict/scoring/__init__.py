"""How good are predictions, ours and others'?"""
