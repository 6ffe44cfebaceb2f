"""How much a text repeats itself: n-grams of token ids, counted."""

from collections.abc import Sequence

TokenIds = Sequence[int]


def ngrams(token_ids: TokenIds, n: int) -> list[tuple[int, ...]]:
    """Every run of n tokens, in order: len - n + 1 of them, or none."""
    return [tuple(token_ids[start : start + n]) for start in range(len(token_ids) - n + 1)]


def repeats(token_ids: TokenIds, n: int) -> list[bool]:
    """For each token, whether the n-gram that ends there was already in the text."""
    seen: set[tuple[int, ...]] = set()
    marks = [False] * min(n - 1, len(token_ids))
    for ngram in ngrams(token_ids, n):
        marks.append(ngram in seen)
        seen.add(ngram)
    return marks


def repeated_share(token_ids: TokenIds, n: int) -> float:
    """seq-rep-n (Welleck et al., 2020): 1 - distinct n-grams / n-grams, which is the share of n-grams already seen. 0 without any."""
    found = ngrams(token_ids, n)
    return 1 - len(set(found)) / len(found) if found else 0.0


def distinct(token_ids: TokenIds, n: int) -> float:
    """distinct-n (Li et al., 2016): distinct n-grams / tokens. A text that never repeats has (len - n + 1) / len. 0 for no text."""
    return len(set(ngrams(token_ids, n))) / len(token_ids) if token_ids else 0.0
