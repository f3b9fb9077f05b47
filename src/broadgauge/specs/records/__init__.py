"""What is kept of a trial, whoever measured it?"""
