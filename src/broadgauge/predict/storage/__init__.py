"""How long does a training wait for its storage?"""
