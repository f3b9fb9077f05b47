"""How fast does a rank read and write files, and from where did the bytes really come?"""
