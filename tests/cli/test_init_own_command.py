"""Proves `broadgauge init --command`: a command line becomes a workload that can be planned."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cli.test_init import MACHINES
from tests.engine.making import devices_of

from broadgauge.cli.main import main
from broadgauge.engine.plan import make_plan
from broadgauge.running.first_experiment import first_experiment
from broadgauge.running.own_command import read_command
from broadgauge.running.own_entry import OwnEntry, read_metrics, scalar
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.cluster import MAX_RANKS_PER_NODE as MOST
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.yaml_source import parse_yaml
from broadgauge.specs.workloads.command import CommandWorkload

TORCHRUN = "torchrun --standalone --nproc_per_node=2 train.py --lr 1e-3 --name 'a b'"


def entry(command: str, *metrics: str, folder: str | None = None) -> OwnEntry:
    return OwnEntry(command=read_command(command), metrics=read_metrics(metrics), folder=folder)


def workload(own: OwnEntry, machine: str = "two cores") -> CommandWorkload:
    (found,) = read_experiment(first_experiment(MACHINES[machine], own), "e.yaml").workloads
    assert isinstance(found, CommandWorkload)
    return found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("torchrun train.py", ["train.py"]),
        (TORCHRUN, ["train.py", "--lr", "1e-3", "--name", "a b"]),
        (
            "torchrun --nnodes 2 --rdzv-backend c10d -m pkg.train --x yes",
            ["-m", "pkg.train", "--x", "yes"],
        ),
        ("torchrun -r 3 --no-python ./run --nnodes 2", ["--no-python", "./run", "--nnodes", "2"]),
        ("python -m torch.distributed.run --nproc-per-node gpu a.py", ["a.py"]),
        ("python3.11 -u train.py --epochs 1", ["train.py", "--epochs", "1"]),
        ("python -m pkg.train", ["-m", "pkg.train"]),
        (
            "train.py --data=/d 'null' '#' '' ''\"''\"'' ",
            ["train.py", "--data=/d", "null", "#", "", "''"],
        ),
        ("torchrun \\\n  train.py \\\n --epochs 1\n", ["train.py", "--epochs", "1"]),
        ("train.py ~trainer.logger a~", ["train.py", "~trainer.logger", "a~"]),
        ("train.py 'it'\\''s' 1 ~1 - --- -1 1:30 0x1f '[a' '{' ', ' : !x '&a' '*'", None),
    ],
)
def test_the_script_is_given_what_the_shell_would_give_it(
    line: str, words: list[str] | None
) -> None:
    if words is None:
        words = ["train.py", "it's", "1", "~1", "-", "---", "-1", "1:30", "0x1f", "[a", "{", ", "]
        words += [":", "!x", "&a", "*"]
    assert list(workload(entry(line)).command) == words


LIKE_NUMBERS = st.text("-+.eE_05infINaN~", min_size=1, max_size=5)


@given(
    st.lists(st.text(max_size=12).filter(str.isprintable) | LIKE_NUMBERS, min_size=1, max_size=30)
)
@example([".5", "-.5", ".5e+3", "-.inf", ".NaN", "--.5", "./a", "../a", ".venv/b", "-.INF"])
@settings(max_examples=60, deadline=None)
def test_any_printable_word_is_read_back_as_it_is(words: list[str]) -> None:
    text = "words: [" + ", ".join(map(scalar, words)) + "]\n"
    assert parse_yaml(text, "e.yaml").data == {"words": words}


def test_options_of_torchrun_that_the_experiment_has_are_left_out_and_told() -> None:
    found = read_command(TORCHRUN)
    assert found.left_out == ("--standalone", "--nproc-per-node")
    assert found.ranks_per_node == 2
    assert read_command("torchrun --nproc-per-node=gpu a.py").ranks_per_node is None
    assert read_command("torchrun a.py --nproc-per-node 8").left_out == ()


@pytest.mark.parametrize("number", ["²", "٣", "9" * 5000, "-1", ""])
def test_what_is_no_number_of_ranks_is_left_out(number: str) -> None:
    found = read_command(f"torchrun --nproc-per-node={number} a.py")
    assert found.ranks_per_node is None
    assert found.left_out == ("--nproc-per-node",)


@pytest.mark.parametrize(
    ("machine", "ranks", "shapes"),
    [
        ("two cores", 2, {"1x2", "2x2"}),
        ("two GPUs", 2, {"1x2", "2x1"}),
        ("eight GPUs", 4, {"1x4", "2x4"}),
        ("eight GPUs", 7, {"1x7"}),
        ("two GPUs", 8, {"1x1", "1x2", "2x1"}),  # more than there are: as without it
        ("no nodes", 2, {"1x2"}),
    ],
)
def test_ranks_a_node_are_those_of_the_command_where_there_are_so_many(
    machine: str, ranks: int, shapes: set[str]
) -> None:
    own = entry(f"torchrun --nproc-per-node {ranks} train.py")
    experiment = read_experiment(first_experiment(MACHINES[machine], own), "e.yaml")
    assert set(experiment.cluster.shapes) == shapes


@pytest.mark.parametrize(
    ("machine", "ranks", "said"),
    [
        ("two GPUs", 8, "  # Not the command's 8 ranks a node: here 2 GPUs are used."),
        ("two cores", 9999, f"  # Not the command's 9999 ranks a node: {MOST} is the most."),
        ("two GPUs", 2, None),
        ("two cores", 2, None),
    ],
)
def test_ranks_a_node_that_are_not_taken_are_told(
    machine: str, ranks: int, said: str | None
) -> None:
    own = entry(f"torchrun --nproc-per-node {ranks} train.py")
    lines = first_experiment(MACHINES[machine], own).splitlines()
    assert [line for line in lines if "ranks a node:" in line] == ([said] if said else [])


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("line", ["torchrun train.py", TORCHRUN])
def test_on_any_machine_it_can_be_planned(name: str, line: str) -> None:
    facts = MACHINES[name]
    text = first_experiment(facts, entry(line))
    plan = make_plan(read_experiment(text, "e.yaml"), devices_of(facts))
    assert {case.workload.kind for case in plan.cases} == {"command"}
    assert max(case.world_size for case in plan.cases) >= 2
    assert max(map(len, text.splitlines())) <= 100


def test_a_long_command_has_a_line_a_word() -> None:
    line = "torchrun train.py " + " ".join(f"--option-{i} value-{i}" for i in range(20))
    assert len(workload(entry(line)).command) == 41
    assert max(map(len, first_experiment(MACHINES["two cores"], entry(line)).splitlines())) <= 100


def test_without_a_metric_it_is_readmes(repository: Path) -> None:
    text = first_experiment(MACHINES["two cores"], entry("torchrun train.py"))
    [line] = [each for each in text.splitlines() if "regex:" in each]
    assert line.strip() in (repository / "README.md").read_text()
    assert "# Make it the regex of a line that your script prints" in text


def test_metrics_are_what_was_said() -> None:
    own = entry("torchrun a.py", r"tokens_per_s=it's ([\d.]+)=tok/s", r"loss=loss=([\d.]+)")
    speed, loss = workload(own).metrics
    assert (speed.name, speed.regex) == ("tokens_per_s", r"it's ([\d.]+)=tok/s")
    assert not speed.lower_is_better
    assert speed.skip_first == 10
    assert (loss.regex, loss.lower_is_better) == (r"loss=([\d.]+)", True)
    assert "Make it the regex" not in first_experiment(MACHINES["two cores"], own)


def test_the_python_and_the_variables_of_the_command_are_kept() -> None:
    line = "OMP_NUM_THREADS=2 HF_TOKEN=hf_secret .venv/bin/python -u train.py"
    text = first_experiment(MACHINES["two cores"], entry(line))
    assert "hf_secret" not in text
    assert "      HF_TOKEN: {from_environment: true}" in text.splitlines()
    assert '      OMP_NUM_THREADS: "2"' in text.splitlines()
    assert workload(entry(".venv/bin/python a.py")).python == ".venv/bin/python"
    assert workload(entry("/opt/v/bin/torchrun a.py")).python == "/opt/v/bin/python"
    assert workload(entry("python a.py")).python is None


@pytest.mark.parametrize(("name", "value"), [("FOO", "😀"), ("null", "1"), ("NO", ".5")])
def test_a_variable_is_read_back_as_it_is(name: str, value: str) -> None:
    assert workload(entry(f"{name}={value} torchrun a.py")).environment == {name: value}


def test_a_number_without_a_nought_is_an_argument_as_others_are() -> None:
    found = workload(entry("torchrun train.py --dropout .5 --shift -.5 ../x .venv"))
    assert found.command == ("train.py", "--dropout", ".5", "--shift", "-.5", "../x", ".venv")


def test_a_file_elsewhere_starts_it_where_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    path = tmp_path / "experiments" / "own.yaml"
    words = ("init", str(path), "--command", f".venv/bin/{TORCHRUN}")
    assert main(words) == 0
    (found,) = read_experiment(path.read_text(), "own.yaml").workloads
    assert isinstance(found, CommandWorkload)
    assert (found.name, found.working_directory) == ("train", "..")
    assert found.python == "../.venv/bin/python"
    told = capsys.readouterr().err
    assert "left out   --standalone, --nproc-per-node:" in told
    assert "metric     README's regex" in told
    assert main(words) == 2
    assert "is kept" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        ("", "names no script", "torchrun train.py"),
        ("A=1", "names no script", "torchrun train.py"),
        ("-x", "names no script", "torchrun train.py"),
        ("--", "names no script", "torchrun train.py"),
        ("-m pkg.train", "names no script", "torchrun train.py"),
        ("''", "names no script", "torchrun train.py"),
        ("A=1 '' a.py", "names no script", "torchrun train.py"),
        ("torchrun ''", "names no script", "torchrun train.py"),
        ("torchrun -m '' a.py", "names no script", "torchrun train.py"),
        ("python ''", "names no script", "torchrun train.py"),
        ("python -m ''", "names no script", "torchrun train.py"),
        ("python -m -x", "names no script", "torchrun train.py"),
        ("torchrun", "torchrun is given no script", "torchrun train.py"),
        ("torchrun --nnodes", "torchrun is given no script", "torchrun train.py"),
        ("torchrun --bogus a.py", "torchrun has no option `--bogus`", "torchrun train.py"),
        ("torchrun 'a.py", "no closing quotation", "torchrun train.py"),
        ("torchrun a.py | tee log", "`|` is for a shell", "alone"),
        ("cd x && torchrun a.py", "`&&` is for a shell", "alone"),
        ("torchrun a.py 2>&1", "`2>&1` is for a shell", "alone"),
        ("torchrun a.py >log", "`>log` is for a shell", "alone"),
        ("torchrun a.py $DATA", "`$DATA` would be filled in by a shell", "double quotes"),
        ("accelerate launch a.py", "begins with `accelerate`", "the script that its ranks run"),
        ("torchrun ~/train.py", "`~/train.py` would be filled in by a shell", "home folder"),
        ("~/v/bin/python a.py", "`~/v/bin/python` would be filled in", "home folder"),
        ("A=~ torchrun a.py", "`~` would be filled in by a shell", "home folder"),
        ("uv run train.py", "begins with `uv`, which starts another", "that other command alone"),
        ("env A=1 torchrun train.py", "begins with `env`", "that other command alone"),
        ("A=1 time torchrun a.py", "begins with `time`", "that other command alone"),
        ("/usr/bin/nohup python a.py", "begins with `/usr/bin/nohup`", "that other command alone"),
        ("numactl -N 0 python a.py", "begins with `numactl`", "that other command alone"),
        ("./start.sh", "begins with `./start.sh`", "the script that its ranks run"),
        ("python -c pass", "`-c` is no script", "torchrun train.py"),
        ("python", "it names no script", "torchrun train.py"),
        (f"a.py --token hf_{'a1' * 17}", "holds a secret", "from_environment"),
        ("a.py --url https://me:pass@host/x", "holds a secret", "from_environment"),
        ("a.py '\x07'", "can't be printed", "torchrun train.py"),
    ],
)
def test_what_torchrun_can_not_start_is_refused(line: str, said: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        read_command(line)
    assert said in refused.value.message
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (["step_time_s"], "takes NAME=REGEX, not `step_time_s`"),
        (["step_time_s="], "takes NAME=REGEX"),
        (["step_time_s=no group"], "needs one group"),
        (["step_time_s=("], "not a regular expression"),
        (["step_ms=(.)"], "a metric is in seconds"),
        (["speed=(.)"], "ends with its unit"),
        (["loss=(.)", "loss=a(.)"], "two metrics are named `loss`"),
    ],
)
def test_a_metric_that_can_not_be_is_refused(metrics: list[str], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_metrics(metrics)
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("option", ["--command", "--metric", "--context"])
def test_two_dashes_are_no_value_of_an_option(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(("init", "-", f"{option}=--"))
    assert ended.value.code == 2
    assert f"argument {option}: `--` is no value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metric", "loss=(.)"), "--metric belongs to --command"),
        (("--from-cluster", "--command", "a.py"), "not for --from-cluster"),
        (("--command", "MASTER_ADDR=x torchrun a.py"), "`MASTER_ADDR`: a launcher sets this"),
    ],
)
def test_flags_that_do_not_go_together(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("init", "-", *words)) == 2
    assert said in capsys.readouterr().err
