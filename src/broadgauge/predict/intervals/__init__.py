"""How sure is a prediction?"""
