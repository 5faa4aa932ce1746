"""The corpus that the embedded speaker makes is what its layout says: sound, text and boundaries that fit."""

import csv
from pathlib import Path

import pytest
import soundfile
import tgt

from common.config import AudioConfig
from common.data.filelist import read_filelist
from common.errors import InputError
from common.extraction.textgrid import fit, read_alignment
from common.text.espeak import Speaker
from scripts.datasets.embedded_corpus import make_corpus, normalize, read_sentences

TEXTS = ["A narrow path climbs.", "Stop at 7!", "The end is near, said the clerk; nobody listened to him."]


@pytest.fixture(scope="module", params=[Speaker(), Speaker(marked=True)], ids=["plain", "marked"])
def speaker(request) -> Speaker:
    return request.param


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, speaker) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder, TEXTS, {"": speaker}, n_validation=1)
    return folder


def test_the_metadata_and_the_lists_have_each_text_once(corpus):
    with (corpus / "metadata.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE))
    assert normalize(TEXTS[1]) == "stop at seven!"
    assert rows == [[f"EM-{i:04d}", text, normalize(text)] for i, text in enumerate(TEXTS, start=1)]
    lists = [read_filelist(path, columns=("wav", "text")) for path in (corpus / "train.txt", corpus / "val.txt")]
    assert [len(entries) for entries in lists] == [2, 1]
    assert sorted(entry.fields["text"] for entries in lists for entry in entries) == sorted(map(normalize, TEXTS))


def test_textgrids_hold_the_phones_of_the_text_to_the_end_of_the_wav_and_fit_its_mel(corpus, speaker):
    config = AudioConfig()
    for i, text in enumerate(map(normalize, TEXTS), start=1):
        grid = tgt.read_textgrid(str(corpus / "TextGrid" / f"EM-{i:04d}.TextGrid"), encoding="utf-8")
        phones = grid.get_tier_by_name("phones")
        assert [interval.text for interval in phones] == speaker.phones(text)
        info = soundfile.info(corpus / "wavs" / f"EM-{i:04d}.wav")
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, "PCM_16")
        assert float(phones[-1].end_time) == pytest.approx(info.duration, abs=1e-6)
        path, n_frames = corpus / "TextGrid" / f"EM-{i:04d}.TextGrid", 1 + info.frames // config.hop_length
        alignment = fit(read_alignment(path, config), n_frames, path=path, config=config)
        assert list(alignment.phones) == speaker.phones(text)
        assert min(alignment.durations) >= (not speaker.marked) and sum(alignment.durations) == n_frames
        words = " ".join(interval.text for interval in grid.get_tier_by_name("words"))
        assert words == text.translate(str.maketrans("", "", ".,;!"))


def test_sentences_that_make_no_lists_are_refused(tmp_path):
    for n_validation in (0, 3):
        with pytest.raises(InputError, match="both lists need"):
            make_corpus(tmp_path, TEXTS, {"": Speaker()}, n_validation=n_validation)
    path = tmp_path / "sentences.txt"
    path.write_text("# no\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="no texts"):
        read_sentences(path)
