"""A written text as data: everything needed to check it elsewhere."""

from inference.distributions import largest
from inference.generation import Scorer
from inference.records import ORDERS, SamplingParams, StopRules
from inference.sentence import Sentence, next_step

CANDIDATES = 20


def sentence_record(sentence: Sentence, scorer: Scorer, params: SamplingParams, rules: StopRules) -> dict:
    """The text, the settings, and for each generated token its step under those settings. JSON-ready; probabilities in full precision.

    Scores come from the cache. `candidates` lists the most likely tokens of each step, before the cuts.
    """
    steps = []
    for step, choice in enumerate(sentence.choices):
        trace = next_step(sentence.rewound(step), scorer, params)
        steps.append(
            {
                "step": step,
                "token_id": choice.token_id,
                "token": scorer.vocabulary.label(choice.token_id),
                "forced": choice.forced,
                "model_probability": choice.probability,
                "drawn_token_id": trace.choice.token_id,
                "u": trace.u,
                "kept_count": trace.kept_count,
                "entropy_bits": trace.entropy_bits,
                "candidates": [
                    {
                        "token_id": int(token_id),
                        "token": scorer.vocabulary.label(int(token_id)),
                        "logit": float(trace.scores.logits[token_id]),
                        "uncut_probability": float(trace.uncut_probs[token_id]),
                        "probability": float(trace.probs[token_id]),
                    }
                    for token_id in largest(trace.uncut_scores, min(CANDIDATES, trace.scores.known_count))
                ],
            }
        )
    return {
        "model": {"name": scorer.info.name, "revision": scorer.info.revision, "dtype": scorer.info.dtype},
        "illustrative": scorer.info.is_illustrative,
        "prompt": sentence.prompt,
        "prompt_ids": list(sentence.prompt_ids),
        "text": scorer.vocabulary.text(sentence.generated_ids),
        "steps_note": "Each step is computed under `params`; a token written under other settings may differ from drawn_token_id.",
        "params": {
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
            "min_p": params.min_p,
            "repetition_penalty": params.repetition_penalty,
            "order": list(ORDERS[params.order]),
            "seed": params.seed,
        },
        "stop_rules": {"max_new_tokens": rules.max_new_tokens, "stop_sequences": list(rules.stop_sequences)},
        "steps": steps,
    }
