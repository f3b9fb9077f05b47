"""Who owns the rank processes of one launch on one machine? A process of its own.

    leader ── socket ── guard (outer process) ── supervisor (PID 1 of its namespace) ── ranks

When any of the first three ends, however it ends, all that is right of it ends too. On one machine
the tool is the leader; on others it is an agent (on_host.py) that passes a leader's orders on.
"""
