"""How does a YAML text become an experiment, and an experiment a text?"""
