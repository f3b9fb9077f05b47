"""Machines that are reached over the user's own ssh: how are launches run there?"""
