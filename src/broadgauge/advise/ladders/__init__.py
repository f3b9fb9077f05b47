"""What does a ladder of link rates say: floor, knee, bytes waited for, and what to try next?"""
