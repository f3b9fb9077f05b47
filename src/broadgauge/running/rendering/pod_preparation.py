"""What is fetched for the pods of an experiment, with the user's files that it takes?"""

from pathlib import Path

from broadgauge.agent import bundle
from broadgauge.manifests.nothing_secret import refuse_secret_words
from broadgauge.manifests.prepared import Preparation, preparation
from broadgauge.manifests.user_files import user_files
from broadgauge.specs.kubernetes.settings import Kubernetes


def prepare_for_pods(settings: Kubernetes, prefix: str, folder: Path) -> Preparation | None:
    """None: all is there. Raises InputError for what would show a secret, or can't be read."""
    if settings.prepare is None:
        return None
    files: dict[str, bytes] = {}
    if settings.prepare.command is not None:
        words = settings.prepare.command.words
        refuse_secret_words("kubernetes.prepare.command.words", words)
        files = user_files(words, settings.model_copy(update={"working_folder": None}), folder)
    return preparation(settings, prefix, files, bundle.build(bundle.PREPARE_PARTS))
