"""Which machines, how many, and what is known of them?"""
