"""How do model and data set get onto a volume, once, and how do pods wait for them?"""
