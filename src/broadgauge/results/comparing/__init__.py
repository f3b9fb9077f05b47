"""Which cases are compared with which, and is the difference more than chance?"""
