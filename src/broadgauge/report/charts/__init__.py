"""Which pictures are there of a run, and how are they drawn?"""
