"""From which layer on the answer is there, for good."""

import pytest

from inference.forward_pass import Reading, settles_at


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
