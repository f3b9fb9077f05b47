"""What is said line by line, before a run, while it goes on, and of manifests?"""
