"""What is between the ranks: emulated, found, attached to pods?"""
