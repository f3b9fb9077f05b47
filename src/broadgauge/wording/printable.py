"""How does a text of others stand on one line, whatever it holds?"""


def printable(text: str) -> str:
    """With a space for each character that a terminal can't show, or that ends a line."""
    return "".join(each if each.isprintable() else " " for each in text)
