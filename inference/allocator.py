"""Two requests to the C library's allocator, where it is glibc; elsewhere they do nothing."""

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_KEPT_BYTES = 256 * 2**20


def reuse_large_blocks() -> None:
    """Keep freed blocks of a few megabytes for the next array instead of giving them back to the system each time.

    A step makes a dozen arrays over the vocabulary, 2 MB each; fetching their pages anew took longer than computing them.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def release_free_memory() -> None:
    """Give back to the system what is free now: reading a large tokenizer.json leaves 200 MB."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
