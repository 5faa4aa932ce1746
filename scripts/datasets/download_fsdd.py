"""Downloads the Free Spoken Digit Dataset, and checks that it is complete.

    python -m scripts.datasets.download_fsdd https://example.org/v1.0.10.tar.gz -o fsdd

makes ``fsdd/recordings`` with 3,000 recordings of 8 kHz: 6 speakers say 10 digits in 50 takes each.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from common.audio import check_wav
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import writing
from scripts.datasets.download import fetch, unpack
from scripts.datasets.make_digits_lists import NAME, WORDS

SAMPLE_RATE = 8000  # Hz
N_SPEAKERS = 6
N_TAKES = 50  # of each digit and speaker


def check(recordings: Path) -> tuple[str, ...]:
    """The speakers of a complete folder of recordings; raises InputError where they are not as published."""
    takes = [found for path in recordings.iterdir() if (found := NAME.fullmatch(path.name))]
    speakers = tuple(sorted({take[2] for take in takes}))
    expected = len(WORDS) * N_SPEAKERS * N_TAKES
    if (len(speakers), len(takes)) != (N_SPEAKERS, expected):
        said = f"{len(takes)} recordings of {len(speakers)} speakers, expected {expected} of {N_SPEAKERS}"
        raise InputError(f"{recordings}: {said}, such as 7_george_12.wav")
    for take in takes:
        check_wav(recordings / take[0], sampling_rate=SAMPLE_RATE)
    return speakers


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch, unpack, check, and only then put the folder in its place."""
    parser = ArgumentParser(prog="download_fsdd", description="download the Free Spoken Digit Dataset")
    parser.add_argument("source", help="URL or path of its archive, a tar or zip")
    parser.add_argument("-o", "--output", type=Path, default=Path("fsdd"), help="folder for the dataset")
    parser.add_argument("--sha256", help="the archive's checksum, in hexadecimal")
    args = parser.parse_args(argv)
    source = args.source.removeprefix("file://")
    archive = args.output.with_name(f"{args.output.name}{'.zip' if source.lower().endswith('.zip') else '.tar.gz'}")
    unpacking = args.output.with_name(f"{args.output.name}.unpacking")
    shutil.rmtree(unpacking, ignore_errors=True)
    fetch(source, archive, sha256=args.sha256)
    try:
        unpack(archive, unpacking)
        found = [path for path in (*unpacking.glob("recordings"), *unpacking.glob("*/recordings")) if path.is_dir()]
        if len(found) != 1:
            raise InputError(f"{args.source}: no archive of the dataset; expected one folder recordings in it")
        speakers = check(found[0])
        with writing(args.output):
            found[0].parent.replace(args.output)
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)
        archive.unlink(missing_ok=True)
    n_recordings = len(WORDS) * N_TAKES * len(speakers)
    print(f"{args.output}: {n_recordings} recordings of {', '.join(speakers)}")
    checksum = "its checksum" if args.sha256 else "not its checksum"
    print(f"verified: each digit, speaker and take is there once, as WAV of {SAMPLE_RATE} Hz and 1 channel; {checksum}")
    return 0


if __name__ == "__main__":
    run(main)
