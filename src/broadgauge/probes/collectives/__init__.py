"""How fast are the collectives themselves?"""
