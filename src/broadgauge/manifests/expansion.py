"""How does a word reach a container as it was written?"""


def not_expanded(text: str) -> str:
    """Kubernetes replaces `$(NAME)` in arguments and variables, and `$$` is a `$`."""
    return text.replace("$", "$$")
