"""A text shown as its tokens."""

from inference.formatting import percent
from inference.sentence import Sentence
from inference.tokens import Vocabulary
from pages.ui.markup import Html, element

_LEVELS = ((0.5, "5"), (0.2, "4"), (0.05, "3"), (0.01, "2"), (0.0, "1"))
"""Least probability of each shade; the figure is written under the token too, so colour is never alone."""


def sentence_view(sentence: Sentence, vocabulary: Vocabulary) -> Html:
    """Prompt tokens, then generated ones with the probability the model gave each; forced ones say so."""
    labels = vocabulary.labels_in_text(sentence.token_ids)
    prompt = [element("li", label, class_="chip prompt") for label in labels[: len(sentence.prompt_ids)]]
    generated = [
        element(
            "li",
            element("span", label),
            element("small", percent(choice.probability) + (" · forcé" if choice.forced else "")),
            class_=f"chip level-{_level(choice.probability)}" + (" forced" if choice.forced else ""),
        )
        for label, choice in zip(labels[len(sentence.prompt_ids) :], sentence.choices)
    ]
    return element("ol", *prompt, *generated, element("li", "▌", class_="chip cursor", aria_hidden="true"), class_="sentence")


def _level(probability: float) -> str:
    return next(level for least, level in _LEVELS if probability >= least)
