"""What is shown of predictions, of link rates, and of a machine's system file?"""
