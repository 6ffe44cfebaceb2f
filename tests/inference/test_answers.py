"""The probability of an answer: against transformers' own loss on a full recompute, on a tiny network and on the real one."""

import math

import pytest

from inference.answers import MAX_ANSWER_TOKENS, MAX_PROMPT_TOKENS, Answer, answer_ids, checked_question, score_answer
from inference.distributions import log_softmax
from inference.errors import UserError
from inference.facts import NOTHING, REPEATED, STATED, VAGUE, read_facts
from inference.prefix_cache import PrefixCache
from tests.conftest import answers

PROMPT, ANSWER = (5, 80, 33, 7), (12, 200, 9)


def loss_of(model, prompt_ids, token_ids) -> float:
    """What transformers makes of the answer in one pass over everything: the sum of its negative log-probabilities."""
    import torch

    everything = torch.tensor([[*prompt_ids, *token_ids]])
    labels = everything.clone()
    labels[0, : len(prompt_ids)] = -100  # not counted
    with torch.inference_mode():
        return float(model.model(everything, labels=labels).loss) * len(token_ids)


def test_an_answers_log_probability_is_that_of_a_full_recompute(tiny):
    answer = score_answer(PrefixCache(tiny).model_alone, PROMPT, ANSWER)
    assert math.log(answer.probability) == pytest.approx(-loss_of(tiny, PROMPT, ANSWER), rel=1e-5)
    assert answer.probability == pytest.approx(math.prod(answer.probs))
    rows = tiny.logits_along(PROMPT + ANSWER)[len(PROMPT) - 1 : -1]
    by_hand = [log_softmax(row) for row in rows]
    assert answer.log_probs == pytest.approx([row[token_id] for row, token_id in zip(by_hand, ANSWER)], abs=1e-5)
    assert answer.favourites == tuple(int(row.argmax()) for row in rows)
    assert answer.favourite_probs == pytest.approx([math.exp(row.max()) for row in by_hand], abs=1e-5)
    assert (answer.prompt_tokens, answer.token_ids) == (len(PROMPT), ANSWER)


def test_the_prompt_is_read_then_the_answer_token_by_token_but_for_its_last(noted):
    scorer = PrefixCache(noted)
    scorer.scores_after(PROMPT)
    noted.passes.clear()
    score_answer(scorer.model_alone, PROMPT, ANSWER)
    assert noted.passes == [((), PROMPT), (PROMPT, ANSWER[:1]), (PROMPT + ANSWER[:1], ANSWER[1:2])]
    assert answers(scorer, (1, 2)), "the model is free again"


def test_the_answer_the_model_would_write_is_all_favourites(tiny):
    scorer, written = PrefixCache(tiny), ()
    for _ in range(4):
        written += (int(tiny.prefill(PROMPT + written).scores.logits.argmax()),)
    assert score_answer(scorer.model_alone, PROMPT, written).is_written
    other = (*written[:-1], int(tiny.prefill(PROMPT + written[:-1]).scores.logits.argmin()))
    assert not score_answer(scorer.model_alone, PROMPT, other).is_written


def test_tiny_probabilities_do_not_vanish():
    answer = Answer(1, (1,) * 3, (-100.0, -120.0, -80.0), (1,) * 3, (0.5,) * 3)
    assert answer.probability == pytest.approx(math.exp(-300), rel=1e-12) and answer.probability > 0


def test_an_empty_answer_and_texts_too_long_are_refused(tiny):
    vocabulary, info = tiny.vocabulary, tiny.info
    assert checked_question(vocabulary, info, "é", "a ") == (vocabulary.encode("é"), vocabulary.encode(" a"))
    with pytest.raises(UserError, match="Écrivez la réponse"):
        checked_question(vocabulary, info, "question", " \n")
    with pytest.raises(UserError, match=f"La réponse fait {MAX_ANSWER_TOKENS + 1} tokens"):
        checked_question(vocabulary, info, "question", "a" * MAX_ANSWER_TOKENS)
    longest = min(MAX_PROMPT_TOKENS, info.context_length - MAX_ANSWER_TOKENS)
    assert len(checked_question(vocabulary, info, "a" * longest, "b")[0]) == longest
    with pytest.raises(UserError, match="Le texte fait"):
        checked_question(vocabulary, info, "a" * (longest + 1), "b")


# The real model


def test_a_prompts_tokens_stay_the_same_once_the_answer_follows(model):
    vocabulary = model.vocabulary
    for fact in read_facts():
        token_ids = answer_ids(vocabulary, fact.answer)
        for document in fact.documents.values():
            prompt = fact.prompt(document)
            assert vocabulary.encode(prompt) + token_ids == vocabulary.encode(f"{prompt} {fact.answer}")


def test_a_sentence_makes_an_invented_answer_the_favourite_and_a_vague_one_does_not(scorer):
    fact = read_facts()[0]
    token_ids = answer_ids(scorer.vocabulary, fact.answer)
    assert [scorer.vocabulary.label(token_id) for token_id in token_ids] == ["␣Vel", "kar", "is"]
    found = {}
    for name in (NOTHING, VAGUE, STATED, REPEATED):
        found[name] = score_answer(scorer.model_alone, scorer.vocabulary.encode(fact.prompt(fact.documents[name])), token_ids)
    assert found[NOTHING].probability < 1e-9 and found[VAGUE].probability < 1e-9
    assert found[STATED].favourites[0] == token_ids[0] and 0.3 < found[STATED].probs[0] < 0.45
    stated_ids = scorer.vocabulary.encode(fact.prompt(fact.stated))
    assert math.log(found[STATED].probability) == pytest.approx(-loss_of(scorer.model, stated_ids, token_ids), abs=1e-4)
    assert found[REPEATED].probability > 2 * found[STATED].probability
