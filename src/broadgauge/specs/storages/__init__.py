"""Where are the files of a training?"""
