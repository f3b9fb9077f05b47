"""What is said of predictions: what is best, what they cost, where more gains nothing?"""
