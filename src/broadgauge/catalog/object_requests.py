"""What do requests to an object store cost? Beside the hours, which prices.yaml has."""

USD_PER_PUT = 0.005 / 1000
USD_PER_GET = 0.0004 / 1000
"""Of S3 Standard in us-east-1: PUT, COPY, POST and LIST, and GET and all others; deleting is free.
Other classes, regions and stores differ. Source: "S3 request fees explained", c3x.dev, which
repeats Amazon's list, read on 2026-11-25; USD a thousand requests."""
WHOSE = "S3 Standard, us-east-1"


def requests_usd(*, puts_count: int, gets_count: int) -> float:
    """US dollars, without what is stored meanwhile and what leaves the region."""
    return puts_count * USD_PER_PUT + gets_count * USD_PER_GET
