"""What is written beside a sound: its picture, subtitles, timings and prosody."""

from common.files import write_json, write_text
from common.synthesis.captions import subtitles as subtitles_of
from common.synthesis.output_folder import Companions
from common.synthesis.pictures import draw_speech


def companions_of(*, plots: bool, subtitles: str | None, timings: bool, prosody: bool) -> Companions:
    """The files that are asked for, by suffix."""
    files: Companions = {}
    if plots:
        files[".png"] = draw_speech
    if subtitles is not None:
        files[f".{subtitles}"] = lambda speech, path: write_text(path, subtitles_of(speech, subtitles))
    if timings:
        files[".timings.json"] = lambda speech, path: write_json(path, speech.timings())
    if prosody:
        files[".prosody.json"] = lambda speech, path: speech.table.save(path)
    return files
