"""Which words of a job does only its leader know?"""

from dataclasses import replace

from broadgauge.messages.leader import Job


def with_words(job: Job, words: dict[str, str]) -> Job:
    """The job with these words filled in, wherever a text of its orders has them."""

    def fill(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    def fill_all(texts: dict[str, str]) -> dict[str, str]:
        return {name: fill(text) for name, text in texts.items()}

    orders = []
    for each in job.orders:
        ranks = tuple(
            replace(
                rank,
                environment=fill_all(rank.environment),
                log_paths=fill_all(rank.log_paths),
                log=fill(rank.log),
            )
            for rank in each.order.ranks
        )
        order = replace(
            each.order,
            launch_id=fill(each.order.launch_id),
            environment=fill_all(each.order.environment),
            ranks=ranks,
        )
        orders.append(replace(each, order=order))
    return replace(job, orders=tuple(orders))
