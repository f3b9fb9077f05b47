"""How do a run's figures get into another tool?"""
