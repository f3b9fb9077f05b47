"""What does doctor say of logs, of this machine, of a run?"""
