"""What runs in a pod before training begins, and starts it?"""
