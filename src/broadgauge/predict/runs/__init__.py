"""What does a stored run tell predictions?"""
