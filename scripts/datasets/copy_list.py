"""Lists recordings of a corpus for copy synthesis, which shows how good a vocoder can be.

    python -m scripts.datasets.copy_list LJSpeech-1.1 copy.tsv

``inference.py --hifigan vocoder.pt -i copy.tsv -o copies`` then makes sound of the recordings' own mels.
"""

from dataclasses import dataclass
from pathlib import Path

from common.cli import ArgumentParser, run
from common.files import write_text
from common.options import add_options, option
from scripts.datasets.make_filelists import find_recordings


@dataclass(frozen=True)
class CopyOptions:
    """Which recordings are listed."""

    n_clips: int = option(10, "how many, the first by name; 0: all", least=0)


def main() -> int:
    """Write the list: a header, then each recording's name and path."""
    parser = ArgumentParser(prog="copy_list.sh", description="List recordings of a corpus for copy synthesis.")
    parser.add_argument("corpus", type=Path, help="folder with wavs/")
    parser.add_argument("list", type=Path, help="file to write, of columns output and wav")
    add_options(parser, CopyOptions)
    args = parser.parse_args()
    clips = list(find_recordings(args.corpus).items())[: args.n_clips or None]
    rows = [f"{name}.wav\t{args.corpus.resolve() / path}\n" for name, path in clips]
    write_text(args.list, "".join(["output\twav\n", *rows]))
    print(f"{args.list}: {len(clips)} recordings")
    return 0


if __name__ == "__main__":
    run(main)
