"""Is it said in one line how to install what speaks to a cluster?"""

import pytest

from broadgauge.platforms.kubernetes import extra
from broadgauge.specs.errors import PlatformError


def test_what_is_not_installed_is_said_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extra.check_extra()
    monkeypatch.setattr(extra, "find_spec", lambda _: None)
    with pytest.raises(PlatformError, match="httpx2, which is not installed") as caught:
        extra.check_extra()
    assert "pip install 'broadgauge[kubernetes]'" in str(caught.value.hint)
