"""Proves specs/token_forms.py: what is refused is a token for sure, a variable's name is none."""

import pytest

from broadgauge.specs.token_forms import TOKEN, holds_token

KEY = "q7Zk2mPx9LwB4tVn8RcJ"


@pytest.mark.parametrize(
    "text",
    [
        f"hf_{KEY}",
        f'login(token="hf_{"aBcD" * 8}aB")',
        f"x ghp_{KEY} y",
        f"AKIA{KEY.upper()}",
        f"sk-proj-{KEY}",
        f"eyJhbGciOiJIUzI1NiJ9.{KEY}.{KEY}",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA==",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_tokens_and_private_keys(text: str) -> None:
    assert holds_token(text)


@pytest.mark.parametrize(
    "text",
    [
        "hf_tokenizer = AutoTokenizer.from_pretrained(name)",
        "from x import hf_AutoModelForCausalLM, hf_llama3instruct",
        'token = os.environ["HF_TOKEN"]',
        "task-scheduling-of-every-kind",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_names_and_certificates_are_none(text: str) -> None:
    assert not holds_token(text)


def test_what_is_masked_is_more() -> None:
    assert TOKEN.search("hf_tokenizer")
