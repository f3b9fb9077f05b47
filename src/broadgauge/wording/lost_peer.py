"""Do these words say no more than that another rank is gone, or did not answer?"""

import re

_ONLY_A_PEER_SEES = re.compile(
    r"connect(ion)?\b[^\r\n]{0,80}\b(closed|reset|refused|abort(ed)?)|closed by (remote )?peer"
    r"|connection ?(closed|reset|refused|aborted)|broken ?pipe|failed to connect|connectfullmesh"
    r"|no route to host|(host|network) is unreachable"
    r"|remote process|remote error|watchdog|heartbeat|communicator was aborted"
    r"|connect(ion)? timed? ?out|socket timeout|wait timeout|timed out [^\r\n]{0,40}waiting"
    r"|unhandled system error|nccl communicator",
    re.IGNORECASE,
)


def sees_only_a_peer(text: str) -> bool:
    """The cause is then elsewhere."""
    return _ONLY_A_PEER_SEES.search(text) is not None
