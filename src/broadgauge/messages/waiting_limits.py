"""How long is another process waited for before it is given up? One factor for all such limits.

A limit is long enough where cores are free. Where they are not, on a small machine, in CI, beside
other jobs, whoever is waited for is late and not gone: BROADGAUGE_LIMIT_FACTOR=10 makes every limit
ten times as long. It is read once, and reaches whatever the tool starts: supervisors inherit it and
give it to their ranks, agents and leaders on hosts are given it with their start, over ssh.

With the factor, `waiting_limit_s(…)`, are limits against waiting for someone else in vain:

- to be let in, and to prove who is there: CONNECT_LIMIT_S and PROOF_LIMIT_S of agents and their
  leader; ACCEPT_LIMIT_S, PROBE_LIMIT_S, _PROOF_LIMIT_S and _SLACK_S of a found link, and the leader
  for it, ANSWER_LIMIT_S; _CONNECT_S, _STREAM_LIMIT_S and ROUND_TRIP_LIMIT_S of an emulated one;
  COME_LIMIT_S, FIRST_JOBS_LIMIT_S; START_LIMIT_S, STOP_LIMIT_S, ATTACH_LIMIT_S,
  FIRST_ATTACH_LIMIT_S and RECONNECT_LIMIT_S over ssh, and ssh's own (platforms/hosts/ssh.py);
- to say something: each SILENCE_LIMIT_S, what the kernel allows a peer (lost_connection.py);
  ANSWER_LIMIT_S of clocks and of a command's ranks; SEND_LIMIT_S to take something;
- to say the last of it and end: COLLECT_S, DUMP_S, GRACE_S, KILL_S, STORAGE_KILL_S, _KILL_LIMIT_S,
  _STUCK_LIMIT_S, _END_S, END_GRACE_S, END_LIMIT_S, KILL_WAIT_S, LAST_WORDS_S; all of these
  end at once where nothing is left to wait for;
- an API server, and what works behind it: CONNECT_LIMIT_S, ANSWER_LIMIT_S, CREATE_LIMIT_S,
  RUNTIME_LIMIT_S, DELETE_LIMIT_S, SHUT_OUT_LIMIT_S, AWAY_LIMIT_S, LOGIN_LIMIT_S of
  platforms/kubernetes; NO_PODS_LIMIT_S, TRIES_LIMIT_S and UNMANAGED_AFTER_S of its pods, which no
  limit of the user's waits longer for;
- the annotation that says which networks a pod has, STATUS_LIMIT_S;
- a program of another's that is asked: NVIDIA_SMI_LIMIT_S, _GIT_LIMIT_S, _PYTHON_LIMIT_S, the trial
  of namespaces, a child that calibrates.

Without it are

- what users set: `limits:` of an experiment, and what is derived of it;
- intervals: signs of life (ALIVE_EVERY_S), looks (TICK_S, LOOK_EVERY_S, _LOOK_S, PATIENCE_S,
  LOOK_AGAIN_AFTER_S, AGAIN_AFTER_S, ASK_AGAIN_S), and the patience with one datagram
  (round_trip.py), after which the next is sent;
- durations of what is measured (_STREAM_S, _WARM_UP_S, _ROUND_TRIPS_S, OVERRUN_S, BUDGET_S) and
  budgets of our own work (MOST_S of reading logs);
- what is judged of a job's pace (OUTPUT_QUIET_S of probes/stall.py): it goes with `stall_s`;
- how long a leader stays for a tool that has gone (KEEP_S): a day;
- a lock that another tool holds (results/folder/lock.py): it is refused soon, as it may be held for
  hours;
- estimates (engine/expected_time.py), thresholds of findings.

The signs of life stay as frequent, so a longer limit forgives more of them.
"""

import os
from collections.abc import Mapping

FACTOR_VARIABLE = "BROADGAUGE_LIMIT_FACTOR"
HIGHEST_FACTOR = 1000.0
"""With it the shortest limit is minutes, the longest ten days: more is a slip."""
FACTOR_HINT = f"a number from 0.1 to {HIGHEST_FACTOR:g}: 1 is usual, 10 suits a busy machine"
_LOWEST_FACTOR = 0.1


class WrongFactor(ValueError):  # noqa: N818  says what is so
    """The variable holds no such number."""


def read_factor(environment: Mapping[str, str]) -> float:
    """1 where it is not set, or empty. Raises WrongFactor."""
    text = environment.get(FACTOR_VARIABLE, "").strip()
    if not text:
        return 1.0
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not _LOWEST_FACTOR <= factor <= HIGHEST_FACTOR:  # nor is NaN between them
        raise WrongFactor(f"{FACTOR_VARIABLE} in your environment: {text!r} is no such factor")
    return factor


def _usable_factor(environment: Mapping[str, str]) -> float:
    """1 for a wrong one: the tool refuses it before it waits for anything."""
    try:
        return read_factor(environment)
    except WrongFactor:
        return 1.0


LIMIT_FACTOR = _usable_factor(os.environ)


def waiting_limit_s(limit_s: float) -> float:
    """As long as it is where cores are free, times the factor."""
    return limit_s * LIMIT_FACTOR


COLLECT_S = waiting_limit_s(1.0)
"""After a first failure: for the other ranks of an agent, and for a leader's other agents. Who
tells of it first is often not the one that knows why."""


def factor_variables() -> dict[str, str]:
    """What a program that does not inherit our environment is given, to have the same factor."""
    return {FACTOR_VARIABLE: f"{LIMIT_FACTOR:g}"}
