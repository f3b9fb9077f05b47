"""Who holds the launches and trials of an allocation, so that they go on without the tool?

    tool ── ssh ── relay ── unix socket ── leader ─┬─ TCP ── agent of host 0
                                                   └─ TCP ── agent of host 1

The leader runs on the first host, beside its agent. Standard library only, as agents: Python 3.10.
"""
