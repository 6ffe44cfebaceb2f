"""The transformers program that does what the page does, for whoever wants to take it home."""

from inference.records import SamplingParams, StopRules
from inference.sampling import ORDERS

HUB_ID = "google/gemma-3-270m"

_PROCESSORS = {
    "repetition_penalty": "RepetitionPenaltyLogitsProcessor",
    "temperature": "TemperatureLogitsWarper",
    "top_k": "TopKLogitsWarper",
    "top_p": "TopPLogitsWarper",
    "min_p": "MinPLogitsWarper",
}


def transformers_code(prompt: str, params: SamplingParams, rules: StopRules, model: str = HUB_ID) -> str:
    """A Python program, with French comments. Its processors, in the order asked for, give our distribution exactly; its draws
    come from torch's own generator, and are others than ours even under the same seed."""
    stages = [(name, value) for name in ORDERS[params.order] if (value := getattr(params, name)) is not None and _has_effect(name, value)]
    if params.is_greedy:
        stages = [(name, value) for name, value in stages if name == "repetition_penalty"]
    imports = ", ".join(
        sorted({"AutoModelForCausalLM", "AutoTokenizer", "LogitsProcessorList", *(_PROCESSORS[name] for name, _ in stages)})
    )
    listed = "".join(f"\n    {processor}({value!r})," for processor, (_, value) in zip(used, stages))
    stop = f"\n    stop_strings={list(rules.stop_sequences)!r},\n    tokenizer=tokenizer," if rules.stop_sequences else ""
    return f"""import torch
from transformers import {imports}

tokenizer = AutoTokenizer.from_pretrained({model!r})
model = AutoModelForCausalLM.from_pretrained({model!r}, dtype=torch.float32)
inputs = tokenizer({prompt!r}, return_tensors="pt")

# Les étapes, dans leur ordre.
processors = LogitsProcessorList([{listed}{chr(10) if listed else ""}])

torch.manual_seed({params.seed})  # fige les tirages de torch, qui ne sont pas ceux de cette page
output = model.generate(
    **inputs,
    do_sample={not params.is_greedy},
    logits_processor=processors,
    top_k=0,  # sinon generate ajoute son propre top-k de 50
    max_new_tokens={rules.max_new_tokens},{stop}
)
print(tokenizer.decode(output[0], skip_special_tokens=True))
"""


def _has_effect(name: str, value: float) -> bool:
    """transformers refuses values that change nothing, or takes them for mistakes."""
    return not (value == 1 and name in ("temperature", "top_p", "repetition_penalty")) and not (value == 0 and name == "min_p")
