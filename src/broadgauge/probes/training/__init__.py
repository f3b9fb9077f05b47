"""How long does a step of a real training take, and how long without communication?"""
