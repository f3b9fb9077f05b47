"""What does a table of published step times say?"""
