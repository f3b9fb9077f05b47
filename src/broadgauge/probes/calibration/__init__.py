"""How fast are this machine's own products, copies and launches, and a training step of them?"""
