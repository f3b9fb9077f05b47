"""How does text become samples of token ids, once, and found again by content?"""
