"""What is shown of one article: published beside predicted, emulated, and yours?"""
