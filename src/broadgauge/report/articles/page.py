"""What does docs/articles.md say? Every row of five articles, and their claims recomputed."""

from collections.abc import Iterator, Sequence

from broadgauge.catalog.article_differences import ComparedPods, compared_pods
from broadgauge.catalog.article_rows import ARTICLES, ListedArticle, PageRow, rows_of
from broadgauge.catalog.articles import articles
from broadgauge.predict.articles.answers import AnsweredClaim, ClaimVerdict, answered_claims

STATES = {
    "rendered": "manifests that a real API server took ([kubernetes.md](kubernetes.md))",
    "test cluster": "a real API server with Kubeflow's operators made its objects and pods; no "
    "kubelet ran them",
    "emulated": "nodes and networks emulated on one machine, by TCP; *toy size*: a model of "
    "1 to 4 million parameters and links as slow as it is small",
    "run in pods": "a real control plane, whose pods were processes in network namespaces of one "
    "machine ([test-kubelet.md](test-kubelet.md))",
    "H200 machine": "one server with two NVIDIA H200, its nodes emulated "
    "([measurements.md](measurements.md))",
    "tested": "read, computed or checked by our tests, without the hardware",
    "computed": "from the published figures, or predicted",
    "known": "stated in our catalog or docs, with its source",
    "not run": "it is here, and what it needs was not there",
    "theirs": "background or opinion: nothing to build or check",
}
"""How the parts of the last column begin, and what that means."""
NOT_YET = "not yet"
SUBJECTS = {
    "entrypoint": "what runs in a pod before training",
    "data and image": "model and data set on a claim, the articles' own configuration, an image",
    "training workloads": "the articles' own frameworks and kernels, schedules, evaluation",
    "storage": "loading, saving, checkpoints",
    "admin": "clouds' NICs, operators, node settings",
    "traces": "where a step's time goes, kernel by kernel",
    "prediction": "of what the predictor can't do",
}
"""Of what is not there yet: `not yet: storage`."""
INTRODUCTION = """\
# The five articles, row by row

Broadgauge began with five articles on what networks and storage cost a training. Each of their
tables, figures, scripts, manifests, procedures, claims and recommendations has a row here: what it
is, what we have of it, and where that ran. Nobody edits a published value to fit
(`src/broadgauge/catalog/articles.yaml`).

How to read it:

- **Rows** say what is ours and the most it has been through. What has no row of ours has a dash.
- **Claims** are recomputed by code from the articles' own tables
  (`src/broadgauge/predict/articles/recomputed/`): *holds* is within 1 %, else it says what differs.
  Bounds that words promise ("nearly 2×") are ours to choose, and stand in
  `src/broadgauge/catalog/article_claims.yaml`.
- `broadgauge article 000` prints the tables: published beside predicted, emulated, and yours.

Written by `python scripts/article_page.py` out of `src/broadgauge/catalog/rows_of_*.yaml`; a test
holds it current, its files there and its commands right.

No cluster with GPUs, with Multus or with RDMA was there, and no cloud account.
"""
ROW_HEAD = ("in the article", "kind", "here", "where it ran")
TOLD_HEAD = ("name", "article", "ours", "why they differ")
CLAIM_HEAD = ("claim", "printed", "recomputed", "how, and in our units", "so")


def article_page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *_legend(), *_summary(), *_articles()]) + "\n"


def _legend() -> Iterator[str]:
    told = {part for row in _all_rows() for part in row.ours.ran.split("; ")}
    missing = [
        f"*{subject}*: {words}"
        for subject, words in SUBJECTS.items()
        if f"{NOT_YET}: {subject}" in told
    ]
    yield from _table(("where it ran", "means"), [*STATES.items(), (NOT_YET, "; ".join(missing))])
    yield from _table(("article", "rows", "something is not there yet", "theirs"), _counts())


def _all_rows() -> Iterator[PageRow]:
    for listed in ARTICLES:
        yield from _rows(listed)


def _rows(listed: ListedArticle) -> list[PageRow]:
    return [row for section in rows_of(listed.id) for row in section.rows]


def _counts() -> list[tuple[str, ...]]:
    """How much of each article is here."""
    rows: list[tuple[str, ...]] = []
    for listed in ARTICLES:
        told = [row.ours.ran for row in _rows(listed)]
        missing = sum(NOT_YET in each for each in told)
        theirs = sum(each == "theirs" for each in told)
        rows.append((listed.id, str(len(told)), str(missing), str(theirs)))
    return rows


def _summary() -> Iterator[str]:
    """Where the articles' sentences and figures do not agree, first of all."""
    yield "## Where their figures say something else\n"
    rows = [
        (listed.id, answer.claim.claim, answer.claim.printed, _number(answer), answer.words)
        for listed in ARTICLES
        for answer in answered_claims(listed.id)
        if answer.verdict is ClaimVerdict.DIFFERS
    ]
    yield from _table(("article", "claim", "printed", "recomputed", "so"), rows)


def _articles() -> Iterator[str]:
    for listed in ARTICLES:
        source = articles().sources[listed.source]
        also = f" and {listed.also}" if listed.also else ""
        yield f"## {listed.id}{also}: {source.title}\n"
        yield f"`broadgauge article {listed.id}`, or by its name: `{listed.name}`.\n"
        yield from _sections(listed)
        yield from _told(listed)
        yield f"### {listed.id}: claims, recomputed\n"
        yield from _table(CLAIM_HEAD, [_claim_cells(each) for each in answered_claims(listed.id)])


def _sections(listed: ListedArticle) -> Iterator[str]:
    answers = {answer.claim.id: answer for answer in answered_claims(listed.id)}
    for section in rows_of(listed.id):
        yield f"### {listed.id}: {section.section}\n"
        yield from _table(ROW_HEAD, [_row_cells(row, answers) for row in section.rows])


def _told(listed: ListedArticle) -> Iterator[str]:
    """What runs in its pods beside what runs in ours."""
    for pods in compared_pods().values():
        if pods.article == listed.id:
            yield f"### {listed.id}: as told there, and as told by us: {pods.what}\n"
            yield from _table(TOLD_HEAD, list(_told_cells(pods)))


def _told_cells(pods: ComparedPods) -> Iterator[tuple[str, ...]]:
    for row in pods.rows:
        values = (f"`{each}`" if each else "–" for each in (row.article, row.ours))
        yield (row.name, *values, row.why or "alike")


def _row_cells(row: PageRow, answers: dict[str, AnsweredClaim]) -> tuple[str, ...]:
    ours = row.ours
    what = row.what
    if row.claim is not None:
        what += f" (*{answers[row.claim].verdict}*)"
    return (what, row.kind, ours.here, ours.ran)


def _claim_cells(answer: AnsweredClaim) -> tuple[str, ...]:
    how = "–" if answer.figure is None else answer.figure.how
    return (answer.claim.claim, answer.claim.printed, _number(answer), how, answer.words)


def _number(answer: AnsweredClaim) -> str:
    return "–" if answer.figure is None else answer.figure.words


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        assert len(row) == len(head)
        assert not any("|" in cell for cell in row)
        yield f"| {' | '.join(row)} |"
    yield ""
