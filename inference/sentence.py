"""A text being written: a prompt, and the tokens chosen so far. Immutable, so that undoing is going back to an earlier one."""

from dataclasses import dataclass, replace

from inference.errors import UserError
from inference.formatting import count
from inference.generation import Scorer
from inference.records import SamplingParams, StepTrace, model_distribution
from inference.sampling import run_pipeline
from inference.tokens import replace_surrogates

MAX_PROMPT_CHARACTERS = 10_000
MAX_PROMPT_TOKENS = 2_048
MAX_BRANCHES = 20


@dataclass(frozen=True)
class Choice:
    """One token of the text.

    probability  the model's own, before any setting, given what precedes.
    forced       chosen by hand rather than by the draw.
    """

    token_id: int
    probability: float
    forced: bool = False


@dataclass(frozen=True)
class Sentence:
    """The prompt as it was typed, its ids, and the tokens written after it. Ids are the state; nothing is tokenized again."""

    prompt: str
    prompt_ids: tuple[int, ...]
    choices: tuple[Choice, ...] = ()

    @property
    def generated_ids(self) -> tuple[int, ...]:
        return tuple(choice.token_id for choice in self.choices)

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.prompt_ids + self.generated_ids

    def with_choice(self, choice: Choice) -> "Sentence":
        return replace(self, choices=self.choices + (choice,))

    def rewound(self, length: int) -> "Sentence":
        """The text as it was after its first `length` generated tokens."""
        return replace(self, choices=self.choices[:length])

    def begins(self, other: "Sentence") -> bool:
        """Whether `other` is this text or goes on from it, whoever chose its tokens."""
        return self.prompt_ids == other.prompt_ids and self.generated_ids == other.generated_ids[: len(self.choices)]


def with_branch(branches: tuple[Sentence, ...], left: Sentence) -> tuple[Sentence, ...]:
    """The branches once the text `left` has been left: each text is kept at its longest, the latest last."""
    if not left.choices or any(left.begins(branch) for branch in branches):
        return branches
    return (*(branch for branch in branches if not branch.begins(left)), left)[-MAX_BRANCHES:]


def open_sentence(prompt: str, scorer: Scorer) -> Sentence:
    """Check a prompt and tokenize it, once. Raises `UserError` when it is empty or too long for the page."""
    if not prompt:
        raise UserError("Le texte de départ est vide. Écrivez au moins un caractère : le modèle continue ce qu’on lui donne.")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise UserError(
            f"Ce texte fait {count(len(prompt))} caractères ; la page en accepte {count(MAX_PROMPT_CHARACTERS)}. "
            "Raccourcissez-le : le texte en cours n’a pas changé."
        )
    prompt_ids = scorer.vocabulary.encode(prompt)
    limit = min(MAX_PROMPT_TOKENS, scorer.info.context_length - 1)
    if len(prompt_ids) > limit:
        raise UserError(
            f"Ce texte fait {count(len(prompt_ids))} tokens ; la page en accepte {count(limit)}. "
            "Raccourcissez-le : le texte en cours n’a pas changé."
        )
    return Sentence(replace_surrogates(prompt), prompt_ids)


def next_step(sentence: Sentence, scorer: Scorer, params: SamplingParams) -> StepTrace:
    """The step after this text: the distribution of its next token under these settings, and the token they choose."""
    return run_pipeline(scorer.scores_after(sentence.token_ids), params, sentence.token_ids, len(sentence.choices))


def written(sentence: Sentence, scorer: Scorer, params: SamplingParams) -> Sentence:
    """The text with one token more: the one these settings choose."""
    trace = next_step(sentence, scorer, params)
    token_id = trace.choice.token_id
    return sentence.with_choice(Choice(token_id, float(trace.model_probs[token_id])))


def forced(sentence: Sentence, scorer: Scorer, token_id: int, by_hand: bool = True) -> Sentence:
    """The text with `token_id` more, whatever the draw says; `by_hand` is False for a token that was drawn earlier, from a link."""
    scores = scorer.scores_after(sentence.token_ids)
    return sentence.with_choice(Choice(token_id, float(model_distribution(scores)[token_id]), by_hand))
