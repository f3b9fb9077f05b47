"""What does an agent in a pod find around it, and what follows for its ranks?"""
