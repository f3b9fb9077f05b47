"""A table of published step times: what is read, what isn't and why."""

import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.predict.making_tables import ROW, csv_of, table_of

from broadgauge.predict.tables.table import REQUIRED, read_table
from broadgauge.specs.errors import InputError

PUBLISHED = Path(__file__).parents[3] / "references" / "measured-training.csv"


def reason_of(row: dict[str, str]) -> str:
    """Why isn't the row read? The row before and the row after it are."""
    table = table_of({"id": "before"}, row, {"id": "after"})
    assert [each.id for each in table.rows] == ["before", "after"]
    assert [each.line for each in table.unread] == [3]
    return table.unread[0].reason


def test_every_published_row_is_read() -> None:
    table = read_table(PUBLISHED.read_bytes(), PUBLISHED.name)
    assert (len(table.rows), table.unread) == (896, ())
    [note] = table.notes
    assert note.startswith(
        "lines 308, 309, 310, 311, 779, 782, 783, 784, 785: taken with the layers"
    )


def test_a_row_is_the_training_that_it_says() -> None:
    row = table_of({"flags": "CPU offload; repeat spread x1.04", "strategy": " FSDP "}).rows[0]
    assert row.flags == ("CPU offload", "repeat spread x1.04")
    assert (row.line, row.id, row.source, row.step_time_s) == (2, "row-0", "somebody", 1.25)
    case = row.case
    assert (case.gpu, case.nodes, case.gpus_per_node, case.strategy) == ("h100-sxm", 2, 8, "fsdp")
    assert (case.model.params, case.model.heads, case.micro_batches) == (1.3e9, 16, 1.0)
    assert (case.fabric.transport, case.fabric.node_gbps) == ("infiniband", 400.0)


def test_published_words_are_never_read() -> None:
    lines = csv_of({}).splitlines()
    with_evidence = f"{lines[0]},published_value\n{lines[1]},0.5\n"
    assert read_table(with_evidence.encode(), "table.csv").rows == table_of({}).rows


def test_order_of_columns_marks_and_line_ends_change_nothing() -> None:
    columns = list(ROW)
    random.Random(5).shuffle(columns)
    shuffled = csv_of({}, {"id": "b"}, columns=("extra", *columns))
    data = b"\xef\xbb\xbf" + shuffled.replace("\n", "\r\n").encode()
    assert read_table(data, "table.csv").rows == table_of({}, {"id": "b"}).rows
    for delimiter in (";", "\t"):
        other = csv_of({}, {"id": "b"}).replace(",", delimiter).encode()
        assert read_table(other, "table.csv").rows == table_of({}, {"id": "b"}).rows


@pytest.mark.parametrize(
    ("cells", "same_as"),
    [
        ({"dtype": " BF16 ", "gpu": "H100 SXM", "flash_attention": "Yes"}, {}),
        ({"dtype": "bfloat16", "layers": "24.0", "step_time_s": "1.25e0"}, {}),
        ({"tensor_parallel": "", "zero_stage": "", "compiled": ""}, {}),
        ({"active_params": ""}, {}),
        ({"transport": "IB"}, {}),
    ],
)
def test_the_same_said_otherwise(cells: dict[str, str], same_as: dict[str, str]) -> None:
    assert table_of(cells).rows == table_of(same_as).rows


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"gpu": "h100-sxn"}, "did you mean `h100-sxm`?"),
        ({"gpu": ""}, "`gpu` is empty"),
        ({"step_time_s": "nan"}, "`step_time_s` must be a finite number, not `nan`"),
        ({"step_time_s": "inf"}, "`step_time_s` must be a finite number, not `inf`"),
        ({"step_time_s": "0"}, "`step_time_s` must be more than zero, not `0`"),
        ({"step_time_s": "-1.5"}, "`step_time_s` must be more than zero, not `-1.5`"),
        ({"step_time_s": ""}, "`step_time_s` is empty"),
        ({"params": "7B"}, "`params` must be a number, not `7B`"),
        ({"layers": "2.5"}, "`layers` must be a whole number, not `2.5`"),
        ({"nodes": "0"}, "`nodes` must be at least 1, not `0`"),
        ({"dtype": "bf17"}, "`dtype` can't be `bf17` (did you mean `bf16`?)"),
        ({"strategy": "zero"}, "`strategy` can't be `zero`"),
        ({"lora": "maybe"}, "`lora` is yes or no, not `maybe`"),
        ({"zero_stage": "4"}, "`zero_stage` must be at most 3, not `4`"),
        ({"quantized_base": "int8"}, "`quantized_base` can't be `int8`"),
        ({"data_parallel": "8"}, "context parallel is 8, and nodes × gpus_per_node 2 × 8 = 16"),
        ({"active_params": "2e9"}, "`active_params` 2e+09 is more than `params` 1.3e+09"),
        (
            {"pipeline_parallel": "16", "data_parallel": "1", "layers": "8"},
            "16 pipeline stages are more than the 8 layers of GPT 1B (at most 8 stages)",
        ),
        (
            {"pipeline_parallel": "8", "data_parallel": "2", "virtual_stages": "4"},
            "8 pipeline stages of 4 parts are more than the 24 layers of GPT 1B",
        ),
        (
            {"tensor_parallel": "8", "data_parallel": "2", "heads": "12", "model": ""},
            "the model has 12 attention heads, which do not divide by tensor parallel 8 (one of "
            "1, 2, 3, 4, 6, 12)",
        ),
        (
            {"tensor_parallel": "8", "data_parallel": "2", "heads": "", "hidden": "2044"},
            "hidden size 2044, which do not divide by tensor parallel 8",
        ),
        (
            {"context_parallel": "8", "data_parallel": "2", "seq_len": "2047"},
            "a sequence of 2047 tokens does not divide by context parallel 8",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_listed_with_its_reason(
    cells: dict[str, str], words: str
) -> None:
    assert words in reason_of({"id": "broken", **cells})


def test_a_batch_that_was_rounded_for_print_is_read() -> None:
    """`predict` refuses a batch that is no whole number of micro-batches; a step of about that
    batch was measured."""
    row = {"global_batch": "65", "micro_batch": "4"}
    assert [each.case.global_batch for each in table_of(row).rows] == [65]


def test_lines_that_are_no_rows_are_listed_and_take_no_other_with_them() -> None:
    lines = csv_of({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}).splitlines()
    lines[2] = 'b,"a quote that nobody closes,x'
    lines[4] = lines[4] + ",too,many"
    lines.insert(4, "short,row")
    lines.insert(4, "")
    table = read_table("\n".join(lines).encode(), "table.csv")
    assert [row.id for row in table.rows] == ["a", "c"]
    assert [(each.line, each.reason) for each in table.unread] == [
        (3, "a quote is not closed"),
        (6, "2 cells, and the header has 37"),
        (7, "39 cells, and the header has 37"),
    ]


def test_a_cell_may_hold_a_line_break() -> None:
    text = csv_of({"id": "a", "model": '"two\nlines"'}, {"id": "b"})
    table = read_table(text.encode(), "table.csv")
    assert [(row.line, row.id) for row in table.rows] == [(2, "a"), (4, "b")]


def test_an_unknown_framework_is_read() -> None:
    assert table_of({"framework": "Brand New"}).rows[0].case.framework == "brand-new"


def test_experts_are_read() -> None:
    row = table_of({"architecture": "moe", "params": "47e9", "active_params": "13e9"}).rows[0]
    assert (row.case.model.architecture, row.case.model.active_params) == ("moe", 13e9)


def test_ids_that_stand_twice_are_said_and_scored() -> None:
    table = table_of({}, {})
    assert len(table.rows) == 2
    assert table.notes == ("id `row-0` stands in lines 2, 3: each is scored",)


@pytest.mark.parametrize("missing", REQUIRED)
def test_a_missing_column_is_named(missing: str) -> None:
    columns = tuple(name for name in ROW if name != missing)
    with pytest.raises(InputError, match=f"table.csv: the table has no column `{missing}`"):
        read_table(csv_of({}, columns=columns).encode(), "table.csv")


def test_a_column_that_may_be_missing_is_noted() -> None:
    columns = tuple(name for name in ROW if name not in ("heads", "id"))
    table = read_table(csv_of({}, columns=columns).encode(), "table.csv")
    assert table.rows[0].id == "line 2"
    assert "no column `heads`: taken as empty in each row" in table.notes


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "table.csv is empty"),
        (b"\n \n", "table.csv is empty"),
        (b"id,source\n", "table.csv has a header and no rows"),
        (b"id,id\n1,2\n", "table.csv:1: the column `id` stands twice"),
        (b"id,source\n\xff\xfa,1\n", "table.csv:2: this is not UTF-8 text"),
        (b"\x00\x01\n\x02", "the table has no columns"),
    ],
)
def test_a_file_that_is_no_table_gives_one_message(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_table(data, "table.csv")


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(ROW)), st.text(max_size=12), max_size=6),
    st.binary(max_size=40),
)
def test_nothing_gives_a_traceback_and_no_row_is_lost(cells: dict[str, str], junk: bytes) -> None:
    quoted = {name: '"' + text.replace('"', '""') + '"' for name, text in cells.items()}
    text = csv_of({"id": "first"}, quoted, {"id": "last"}, {"id": "last"})
    data = text.encode("utf-8", "surrogatepass")
    table = read_table(data, "table.csv")
    assert len(table.rows) + len(table.unread) >= 4
    with contextlib.suppress(InputError):  # junk may be no UTF-8
        read_table(data + junk, "table.csv")
