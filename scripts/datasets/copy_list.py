"""Lists recordings of a corpus for copy synthesis, which shows how good a vocoder can be.

python -m scripts.datasets.copy_list LJSpeech-1.1 copy.tsv
"""

from pathlib import Path

from common.cli import ArgumentParser, run
from common.files import write_text
from scripts.datasets.make_filelists import find_recordings


def main() -> int:
    """Write the list: a header, then each recording's name and path."""
    parser = ArgumentParser(prog="copy_list.sh", description="List recordings of a corpus for copy synthesis.")
    parser.add_argument("corpus", type=Path, help="folder with wavs/")
    parser.add_argument("list", type=Path, help="file to write, of columns output and wav")
    parser.add_argument("--n-clips", type=int, default=10, help="how many, the first by name; 0: all")
    args = parser.parse_args()
    clips = list(find_recordings(args.corpus).items())[: args.n_clips or None]
    rows = [f"{name}.wav\t{args.corpus.resolve() / path}\n" for name, path in clips]
    write_text(args.list, "".join(["output\twav\n", *rows]))
    print(f"{args.list}: {len(clips)} recordings")
    return 0


if __name__ == "__main__":
    run(main)
