"""Reading weights from the disk: what is written, what is read back, and what is left behind."""

import os

import pytest

from inference import loading
from inference.loading import time_load
from inference.measurement import Progress
from tests.conftest import follow


@pytest.fixture
def read_back(monkeypatch) -> list[bytes]:
    """What was read while the clock ran."""
    contents = []

    def read(file) -> None:
        contents.append(os.pread(file.fileno(), 10**6, 0))

    monkeypatch.setattr(loading, "_read", read)
    return contents


def test_every_byte_is_on_the_disk_when_the_clock_starts(tmp_path, read_back):
    follow(time_load([b"abc", memoryview(b"defg"), b""], 7, tmp_path, "relit"))
    assert read_back == [b"abcdefg"]


def test_the_time_is_that_of_the_reading(tmp_path):
    _, seconds = follow(time_load([bytes(2**22)] * 4, 2**24, tmp_path, "relit"))
    assert 0 < seconds < 30


def test_progress_goes_with_the_bytes_and_never_beyond_the_whole(tmp_path):
    steps, _ = follow(time_load([b"ab", b"cd", b"efgh"], 4, tmp_path, "relit"))
    assert steps == [Progress(fraction, "relit") for fraction in (0.0, 0.5, 1.0, 1.0)]


def test_a_folder_that_is_not_there_is_made_and_nothing_is_left_in_it(tmp_path):
    folder = tmp_path / "new" / "one"
    follow(time_load([b"abc"], 3, folder, "relit"))
    assert list(folder.iterdir()) == []


def test_nothing_is_left_of_a_measurement_given_up_half_way(tmp_path):
    work = time_load([b"abc", b"def"], 6, tmp_path, "relit")
    next(work)
    next(work)
    work.close()
    assert list(tmp_path.iterdir()) == []


class Stingy(list):
    """A file that takes two bytes at a time, and has room for five."""

    def write(self, chunk) -> int:
        if sum(map(len, self)) + len(chunk[:2]) > 5:
            raise OSError("no room")
        self.append(bytes(chunk[:2]))
        return len(chunk[:2])


def test_a_chunk_that_is_taken_in_parts_is_written_whole_and_no_room_is_an_error():
    file = Stingy()
    loading._write(file, memoryview(b"abc"))
    assert file == [b"ab", b"c"]
    with pytest.raises(OSError, match="no room"):
        loading._write(file, b"defg")
