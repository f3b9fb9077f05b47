"""How do an agent and its leader prove to each other that both know the allocation's token?

Each side sends a challenge and answers the other's with a keyed hash, so the token itself never
crosses the network, and neither an answer nor a challenge can be used again. What follows is not
encrypted: it holds no secrets, which reach agents over ssh.

    leader → agent   <challenge>\\n
    agent → leader   <number> <own challenge> <answer>\\n
    leader → agent   <answer>\\n
"""

import hashlib
import hmac
import os

MAX_LINE_BYTES = 256


def new_token() -> str:
    """256 bits, for one allocation."""
    return os.urandom(32).hex()


def new_challenge() -> str:
    return os.urandom(16).hex()


def answer(token: str, side: str, *challenge: str) -> str:
    """What `side` (`agent 3`, `leader`) says to a challenge. Source: RFC 2104, with SHA-256."""
    text = " ".join((side, *challenge)).encode()
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


def is_right(token: str, side: str, told: str, *challenge: str) -> bool:
    """Is that what `side` says if it knows the token?"""
    return hmac.compare_digest(answer(token, side, *challenge), told)
