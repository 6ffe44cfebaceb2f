"""Prompts of a chosen length."""

from inference.passages import prompt_of, read_passages


def test_a_prompt_has_the_length_asked_for_and_longer_ones_go_on_from_it(model):
    longest = prompt_of(2000, model.vocabulary.encode)
    for length in (1, 16, 512, 2000):
        assert prompt_of(length, model.vocabulary.encode) == longest[:length]
        assert len(longest[:length]) == length


def test_the_passages_come_again_but_what_starts_a_text_does_not():
    assert prompt_of(8, lambda _: [9, 1, 2, 3]) == (9, 1, 2, 3, 1, 2, 3, 1)


def test_the_passages_are_the_text(model):
    whole = model.vocabulary.encode("\n".join(read_passages()))
    assert prompt_of(len(whole), model.vocabulary.encode) == whole
