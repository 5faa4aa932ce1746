"""Writes the mel-spectrogram settings of a corpus, for all models that are trained on it.

The sampling rate is that of the first recording, and the other settings suit it, unless options for mel-spectrograms
override them. These are the options of `extract_mels.py`, whose other options are ignored.
"""

from pathlib import Path

from common.audio.mel import MelExtractor
from common.audio.options import AudioOptions, read_audio_config
from common.audio.wav import check_wav
from common.checkpoints.loading import open_checkpoint
from common.cli import ArgumentParser, run
from common.config import audio_preset, to_plain
from common.extraction.options import add_mel_options
from common.files import write_json
from common.importing.advice import check_recordings
from common.options import read_options
from scripts.datasets.make_filelists import find_recordings


def main() -> int:
    parser = ArgumentParser(description="write the settings of a corpus's mel-spectrograms")
    parser.add_argument("-d", "--dataset-path", type=Path, required=True, help="folder of wavs/")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--like", type=Path, help="checkpoint of a text-to-mel model whose mel settings to use")
    add_mel_options(parser)
    args, _ = parser.parse_known_args()
    options: AudioOptions = read_options(args, AudioOptions)
    base = None
    if args.like is not None:
        base = open_checkpoint(args.like, role="generator", ema=True).checkpoint.audio
    elif options.audio_config is None:
        recordings = [*find_recordings(args.dataset_path).values()]
        check_recordings(args.dataset_path, recordings)
        first = check_wav(args.dataset_path / recordings[0], sampling_rate=None)
        base = audio_preset(options.values.get("sampling_rate") or first.sampling_rate)
    audio = options.config(corpus=args.dataset_path, base=base)
    MelExtractor(audio)  # refuses invalid settings
    if args.output.exists():
        read_audio_config(args.output)  # don't overwrite another kind of file
    write_json(args.output, to_plain(audio))
    print(f"{args.output}: mels of {audio.sampling_rate} Hz, {audio.n_mels} channels, hop {audio.hop_length}")
    return 0


if __name__ == "__main__":
    run(main)
