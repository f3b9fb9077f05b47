"""How is a machine measured for predictions?"""
