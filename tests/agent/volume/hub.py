"""A repository's answers, as the hub gives them."""

import json

from tests.agent.volume.content_server import Answer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISION = "/api/models/me/tiny/revision/main"


class Hub:
    """Of `me/tiny`, whose branch is at this commit."""

    def __init__(
        self,
        files: dict[str, bytes],
        sha256: str | None = None,
        commit: str = COMMIT,
        revision: str = "main",
        files_of_page: int = 1000,
    ) -> None:
        self.commit = commit
        lfs = {} if sha256 is None else {"lfs": {"oid": sha256}}
        self.answers = {self.file(name): Answer(content=data) for name, data in files.items()}
        about = Answer(content=json.dumps({"sha": commit}).encode())
        self.answers[f"/api/models/me/tiny/revision/{revision}"] = about
        listed = [{"type": "directory", "path": "deep"}] + [
            {"type": "file", "path": name, "size": len(data), **lfs} for name, data in files.items()
        ]
        starts = range(0, len(listed), files_of_page)
        pages = [listed[start : start + files_of_page] for start in starts]
        tree = f"/api/models/me/tiny/tree/{commit}?"
        for number, page in enumerate(pages):
            query = f"recursive=true&cursor={number}" if number else "recursive=true"
            answer = Answer(content=json.dumps(page).encode())
            if number + 1 < len(pages):
                following = f"https://hub.example{tree}recursive=true&cursor={number + 1}"
                answer.headers = {"Link": f'<{following}>; rel="next"'}
            self.answers[tree + query] = answer

    def file(self, name: str) -> str:
        """The path that it has on the server."""
        return f"/me/tiny/resolve/{self.commit}/{name}"
