"""What may an experiment ask of a cluster: names, volumes, what is fetched before?"""
