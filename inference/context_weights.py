"""What a model knows by its weights against what it reads in its context: invented facts asked with and without a document."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from inference.answers import Answer, answer_ids, score_answer
from inference.conversation import Memory, WeightChunks, measure_memory
from inference.facts import Fact
from inference.measurement import Progress, Work, within
from inference.prefix_cache import PrefixCache


@dataclass(frozen=True)
class ContextWeights:
    """answers  by fact, then by document: what the model gives to the right answer.
    memory   of a conversation about the first fact.
    """

    answers: dict[str, dict[str, Answer]]
    memory: Memory

    @property
    def documents(self) -> tuple[str, ...]:
        return tuple(next(iter(self.answers.values())))

    def probabilities(self, document: str) -> dict[str, float]:
        """Of the right answer, by fact."""
        return {fact: answers[document].probability for fact, answers in self.answers.items()}

    def median(self, document: str) -> float:
        return statistics.median(self.probabilities(document).values())

    def written(self, document: str) -> int:
        """For how many facts the model, choosing its favourite each time, would write the right answer."""
        return sum(answers[document].is_written for answers in self.answers.values())


def measure(scorer: PrefixCache, facts: Sequence[Fact], weight_chunks: WeightChunks) -> Work[ContextWeights]:
    """Raises `UserError` when a text is longer than the model's context."""
    answers = yield from within(0.0, 0.75, _ask(scorer, facts))
    memory = yield from within(0.75, 1.0, measure_memory(scorer, facts[0], weight_chunks))
    return ContextWeights(answers, memory)


def _ask(scorer: PrefixCache, facts: Sequence[Fact]) -> Work[dict[str, dict[str, Answer]]]:
    asked = [(fact, document, text) for fact in facts for document, text in fact.documents.items()]
    answers: dict[str, dict[str, Answer]] = {fact.name: {} for fact in facts}
    for position, (fact, document, text) in enumerate(asked):
        yield Progress(position / len(asked), f"{fact.name}, {document}")
        prompt_ids = scorer.vocabulary.encode(fact.prompt(text))
        answers[fact.name][document] = score_answer(scorer.model_alone, prompt_ids, answer_ids(scorer.vocabulary, fact.answer))
    return answers
