"""How does the tool use agents elsewhere that a leader holds together, whatever leads to it?"""
