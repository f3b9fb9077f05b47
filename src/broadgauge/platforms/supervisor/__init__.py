"""Who owns the rank processes of one launch? A process of its own, started by the tool.

    tool ── socket ── guard (outer process) ── supervisor (PID 1 of its namespace) ── ranks

When any of the first three ends, however it ends, all that is right of it ends too.
"""
