"""What runs on the ranks, what is it told, and what is measured of it?"""
