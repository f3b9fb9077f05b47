"""Is anything secret kept of a log, wherever it stands?"""

import json

import pytest
from tests.doctor.log.retelling import NAMES, clean, facts_of, lines_of, read_lines

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.masking import kept, masked
from broadgauge.doctor.log.overview import job_overview
from broadgauge.doctor.log.reading import read_text

KEY = "q7Zk2mPx9LwB4tVn8RcJ"
SECRETS = {
    "name": f"HF_TOKEN={KEY}",
    "API key": f"WANDB_API_KEY: {KEY}",
    "JSON": f'{{"AWS_SECRET_ACCESS_KEY": "{KEY} {KEY}"}}',
    "quoted": f"PGPASSWORD='{KEY} {KEY}'",
    "as NCCL says it": f"MY_SECRET set by environment to {KEY}",
    "bearer": f"Authorization: Bearer {KEY}",
    "bearer alone": f"curl -H Bearer {KEY}",
    "option": f"train.py --api-key {KEY} --lr 0.1",
    "option with sign": f"train.py --api-key={KEY} --lr 0.1",
    "header": f"X-Api-Key: {KEY}",
    "URL": f"https://me:{KEY}@example.com/a",
    "URL of a database": f"postgresql://me:{KEY}@db:5432/x",
    "query": f"https://example.com/a?token={KEY}&b=1",
    "GitHub": f"ghp_{KEY}",
    "GitHub, fine": f"github_pat_{KEY}",
    "Hugging Face": f"hf_{KEY}",
    "AWS": f"AKIA{KEY.upper()}",
    "web token": f"eyJhbGciOiJIUzI1NiJ9.{KEY}.{KEY}",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_masked(secret: str) -> None:
    for text in (secret, f"before {secret} after", f'"{secret}"', f"({secret})"):
        assert KEY.lower() not in masked(text).lower()
        assert "***" in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "NCCL_IB_HCA set by environment to mlx5_0:1",
        "PAD_TOKEN: 5, tokens/s: 81234, tokenizer=llama",
        "Call to connect returned Connection refused, retrying",
        "socketPollConnect: Connect to 192.0.2.1<3> returned 111(Connection refused) errno",
        "comm 0x5581 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0",
        "ssh://git@host/a and tcp://192.0.2.1:29500",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_nothing_secret_is_kept_of_a_log(secret: str) -> None:
    """At the end of each line: in messages, warnings, errors of torch, variables, tables."""
    for name in ("2.28.9-torch-crash", "2.30.7-missing-plugin"):
        lines = [line + b" " + secret.encode() for line in lines_of(name)]
        reading = read_lines([*lines, *OTHERS, f"NCCL_MY_PASSWORD={KEY}".encode()])
        assert KEY.lower() not in repr(reading).lower()
        findings = [finding.model_dump(mode="json") for finding in log_findings(reading)]
        assert findings
        assert KEY.lower() not in json.dumps([findings, job_overview(reading).to_json()]).lower()


OTHERS = [
    f"node0:1:1 [0] NCCL INFO NCCL_NET_TOKEN set by environment to {KEY}".encode(),
    f"node0:1:1 [0] NCCL INFO NCCL_COMM_ID set by environment to https://a:{KEY}@b:1".encode(),
    f"node0:1:1 [0] misc.cc:1 NCCL WARN something new, password={KEY}".encode(),
    f"node0:1:1 [0] NCCL INFO Using network hf_{KEY}".encode(),
    f"node0:1:1 [0] NCCL INFO Bootstrap : Using eth0:hf_{KEY}<0>".encode(),
    f"RuntimeError: NCCL error in: https://me:{KEY}@example.com".encode(),
]


def test_variables_of_nccl_that_hold_one_are_shown_masked() -> None:
    [process] = read_text(b"\n".join(OTHERS)).processes.values()
    assert process.variables["NCCL_NET_TOKEN"] == "***"
    assert process.variables["NCCL_COMM_ID"] == "https://***@b:1"


def test_masks_change_nothing_in_logs_without_secrets() -> None:
    for name in NAMES:
        for seen in clean(name).seen:
            assert not any("***" in text for _, text in seen.lines)
    assert "***" not in repr([facts_of(clean(name)) for name in NAMES])


def test_a_token_that_the_cut_goes_through_is_not_kept() -> None:
    assert KEY[:8] not in kept("HF_TOKEN=x " * 370 + f"end ghp_{KEY}"[:12])
    assert len(kept("a b" * 5000)) == 400
