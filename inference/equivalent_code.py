"""The transformers program that does what the page does, for whoever wants to take it home."""

from inference.records import ORDERS, SamplingParams, StopRules

_PROCESSORS = {
    "repetition_penalty": "RepetitionPenaltyLogitsProcessor",
    "temperature": "TemperatureLogitsWarper",
    "top_k": "TopKLogitsWarper",
    "top_p": "TopPLogitsWarper",
    "min_p": "MinPLogitsWarper",
}


def transformers_code(prompt: str, params: SamplingParams, rules: StopRules, model: str, dtype: str) -> str:
    """A Python program, with French comments. Its processors, in the order asked for, give our distribution exactly on the same
    weights; its draws come from torch's own generator, and are others than ours even under the same seed.

    `model` is a hub id or a folder, `dtype` a name of torch's.
    """
    stages = [(name, value) for name in ORDERS[params.order] if (value := getattr(params, name)) is not None and _has_effect(name, value)]
    if params.is_greedy:
        stages = [(name, value) for name, value in stages if name == "repetition_penalty"]
    used = [_PROCESSORS[name] for name, _ in stages]
    imports = ", ".join(sorted({"AutoModelForCausalLM", "AutoTokenizer", "LogitsProcessorList", *used}))
    listed = "".join(f"\n    {processor}({value!r})," for processor, (_, value) in zip(used, stages))
    stop = f"\n    stop_strings={list(rules.stop_sequences)!r},\n    tokenizer=tokenizer," if rules.stop_sequences else ""
    return f"""import torch
from transformers import {imports}

tokenizer = AutoTokenizer.from_pretrained({model!r})
model = AutoModelForCausalLM.from_pretrained({model!r}, dtype=torch.{dtype})
inputs = tokenizer({prompt!r}, return_tensors="pt")

# Les étapes, dans leur ordre.
processors = LogitsProcessorList([{listed}{chr(10) if listed else ""}])

torch.manual_seed({params.seed})  # fige les tirages de torch, qui ne sont pas ceux de cette page
output = model.generate(
    **inputs,
    do_sample={not params.is_greedy},
    logits_processor=processors,
    temperature=1.0, top_k=0, top_p=1.0, min_p=None, repetition_penalty=1.0,  # rien de plus que ces étapes
    max_new_tokens={rules.max_new_tokens},{stop}
)
print(tokenizer.decode(output[0], skip_special_tokens=True))
"""


def _has_effect(name: str, value: float) -> bool:
    """transformers refuses values that change nothing, or takes them for mistakes."""
    return not (value == 1 and name in ("temperature", "top_p", "repetition_penalty")) and not (value == 0 and name == "min_p")
