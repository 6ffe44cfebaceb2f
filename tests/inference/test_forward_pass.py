"""From which layer on the answer is there, for good."""

import pytest

from inference.errors import UserError
from inference.forward_pass import MAX_TOKEN_CHARACTERS, MAX_TOKENS, Reading, checked_text, settles_at


@pytest.mark.parametrize(
    ("ranks", "layer"),
    [
        ((1,), 0),
        ((1, 1, 1), 0),
        ((7, 1, 1), 1),
        ((7, 5, 2, 1), 3),
        ((7, 1, 2, 1, 1), 3),
        ((1, 2, 1), 2),
    ],
)
def test_the_favourite_settles_where_it_is_ahead_for_good(ranks, layer):
    assert settles_at(tuple(Reading((), (), 0.0, 0.0, rank) for rank in ranks)) == layer


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_is_refused(text):
    with pytest.raises(UserError, match="Écrivez"):
        checked_text(text)


def test_a_text_is_cut_only_beyond_what_could_be_followed():
    assert checked_text("mot " * 50) == "mot " * 50
    assert len(checked_text("x" * 1_000_000)) == MAX_TOKENS * MAX_TOKEN_CHARACTERS
