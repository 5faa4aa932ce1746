"""Makes of a filelist the list of phrases that a voice is evaluated on: what it is to say, beside the recordings.

python -m scripts.datasets.spoken_list filelists/my_voice_audio_text_val_filelist.txt -o phrases.tsv --no-speakers
"""

from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import read_lines, write_text


def main() -> None:
    """Write the list."""
    parser = ArgumentParser(description="make a list of phrases, with their recordings, of a filelist")
    parser.add_argument("filelist", type=Path, help="lines wavs/clip.wav|transcript[|speaker]")
    parser.add_argument("-o", "--output", type=Path, required=True, help="list of phrases")
    parser.add_argument("--no-speakers", action="store_true", help="for another voice than these speakers'")
    args = parser.parse_args()
    rows = [line.split("|") for line in read_lines(args.filelist) if line]
    if not rows or any(len(row) not in (2, 3) for row in rows):
        raise InputError(f"{args.filelist}: expected lines wavs/clip.wav|transcript[|speaker]")
    n_columns = 2 if args.no_speakers else min(map(len, rows))
    lines = [["output", "wav", "text", "speaker"][: n_columns + 1]]
    lines += [[row[0].removeprefix("wavs/"), *row[:n_columns]] for row in rows]
    write_text(args.output, "".join("\t".join(line) + "\n" for line in lines))


if __name__ == "__main__":
    run(main)
