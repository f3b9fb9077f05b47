"""How does a run become one HTML file?"""
