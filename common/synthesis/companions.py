"""What is written beside a sound: its picture, subtitles, timings and prosody."""

from common.files import write_json, write_text
from common.synthesis.captions import subtitles
from common.synthesis.options import OutputOptions
from common.synthesis.output_folder import Companions
from common.synthesis.pictures import draw_speech


def companions_of(kept: OutputOptions) -> Companions:
    """The files that are asked for, by suffix."""
    kind = kept.subtitles
    files: Companions = {}
    if kept.plots:
        files[".png"] = draw_speech
    if kind is not None:
        files[f".{kind}"] = lambda speech, path: write_text(path, subtitles(speech, kind))
    if kept.timings:
        files[".timings.json"] = lambda speech, path: write_json(path, speech.timings())
    if kept.save_prosody:
        files[".prosody.json"] = lambda speech, path: speech.table.save(path)
    return files
