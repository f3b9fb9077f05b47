"""`run --on hosts --detach`: does the run go on without its tool, and is it collected later?"""

import pytest
from tests.platforms.hosts.machines import Tool, experiment
from tests.platforms.hosts.test_runs import ALL, LINGERING, resume, statuses

pytestmark = [pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd, pytest.mark.slow]


def test_a_detached_run_goes_on_and_resume_collects_it(tool: Tool) -> None:
    tool.write(experiment(more=LINGERING, platform="emulated"))
    with tool.machines.held() as hold:
        started = tool.start(
            *("run", "e.yaml", "--on", "hosts", "--detach"),
            LINGER_IN="measure",
            LINGER_HOLD=hold.there,
        )
        said = started.end(0)
        assert "the run goes on without this terminal" in said
        assert "run --resume" in said
        assert tool.machines.processes("leader")
    resume(tool)
    assert statuses(tool) == dict.fromkeys(ALL, "ok")
