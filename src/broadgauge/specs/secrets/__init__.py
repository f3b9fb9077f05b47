"""Which variables are secrets, and how are their values kept out of all that is written?"""
