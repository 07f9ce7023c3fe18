"""A short run of the reader's cases with fixed seeds, and that the fuzzer would see what it looks for."""

from __future__ import annotations

import json
import warnings

import pytest
import reader_fuzz
from command import PROJECT

from edgeconv.errors import ImageReadError
from edgeconv.io import reading
from edgeconv.io.read_limits import ReadRules

CASES = 3_000
RECORD = PROJECT / "docs" / "results" / "reader_fuzz.json"


@pytest.fixture(autouse=True)
def _warnings_of_libraries() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's and NumPy's, about what they could still read
        yield


def test_damaged_files_are_refused_or_read_and_nothing_else() -> None:
    outcomes = {}
    for number in range(CASES):
        kind, outcome = reader_fuzz.run(number)
        outcomes.setdefault(kind, set()).add(outcome)
    assert outcomes.keys() == reader_fuzz.labels()
    assert all("refused" in found for found in outcomes.values())
    assert not any("unseen" in outcomes[kind] for kind in reader_fuzz.PNGS)


def test_a_whole_file_of_every_kind_is_read_without_a_word() -> None:
    for kind, data in reader_fuzz.whole_files().items():
        notes = reading.decode_image(data, kind, ReadRules(strict=True)).notes
        assert not any(note.startswith(reading.SAID_NOTE) for note in notes), kind


@pytest.mark.parametrize("fault", ["an error of another kind", "an error without the name", "other pixels once more"])
def test_the_fuzzer_sees_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = reader_fuzz.decode_image
    calls = []

    def wrong(data: bytes, name: str, *rules: object) -> object:
        calls.append(name)
        if fault == "an error of another kind":
            raise KeyError(name)
        if fault == "an error without the name":
            raise ImageReadError("something is wrong")
        picture = decode(data, name, *rules)
        if len(calls) % 2 == 0:
            picture.pixels.flags.writeable = True
            picture.pixels[0, 0, 0] += 1
        return picture

    harmless = next(number for number in range(1_000) if reader_fuzz.run(number)[1] == "harmless")
    monkeypatch.setattr(reader_fuzz, "decode_image", wrong)
    with pytest.raises((reader_fuzz.Broken, KeyError)):
        reader_fuzz.run(harmless)


def test_the_committed_record_found_nothing_and_tells_what_readme_says() -> None:
    record = json.loads(RECORD.read_text())
    assert record["failures"] == []
    assert record["cases"] > 100_000
    assert record["counts"].keys() == reader_fuzz.labels()
    unseen = {kind for kind, outcomes in record["counts"].items() if outcomes.get("unseen")}
    assert unseen.isdisjoint({"PNG", "PNG palette", "PNG 16 bits"})
    assert unseen >= {"JPEG", "JPEG with restarts", "WebP", "BMP"}
