"""What does this machine, node or pod say of the jobs that will run on it?"""
