"""Lists recordings of a corpus for copy synthesis, which shows how good a vocoder can be.

    python -m scripts.datasets.copy_list LJSpeech-1.1 copy.tsv

``inference.py --hifigan vocoder.pt -i copy.tsv -o copies`` then makes sound of the recordings' own mels.
"""

from pathlib import Path

from common.cli import ArgumentParser, non_negative_int, run
from common.files import check_apart, write_text
from scripts.datasets.make_filelists import find_recordings, recording


def main() -> int:
    """Write the list: a header, then each recording's name and path."""
    parser = ArgumentParser(prog="copy_list.sh", description="List recordings of a corpus for copy synthesis.")
    parser.add_argument("corpus", type=Path, help="folder with wavs/")
    parser.add_argument("list", type=Path, help="file to write, of columns output and wav")
    parser.add_argument("--n-clips", type=non_negative_int, default=10, help="how many, the first by name; 0: all")
    args = parser.parse_args()
    folder = args.corpus.resolve()
    clips = {clip: folder / recording(folder, clip) for clip in find_recordings(folder)[: args.n_clips or None]}
    check_apart([("the list", args.list)], list(clips.items()))
    write_text(
        args.list, "".join(f"{line}\n" for line in ["output\twav", *(f"{a}.wav\t{b}" for a, b in clips.items())])
    )
    print(f"{args.list}: {len(clips)} recordings")
    return 0


if __name__ == "__main__":
    run(main)
