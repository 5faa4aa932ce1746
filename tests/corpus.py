"""A made-up corpus for tests: gliding tones with TextGrids, and its features as bytes."""

from pathlib import Path

import numpy as np
import soundfile

RATE = 22050


def glide(seconds: float, *, low: float = 120.0, high: float = 220.0, rate: int = RATE) -> np.ndarray:
    """A voice-like sound of rising pitch between two short silences."""
    t = np.arange(round(seconds * rate)) / rate
    phase = 2 * np.pi * (low * t + (high - low) * t**2 / (2 * seconds))
    sound = 0.3 * np.sin(phase) + 0.15 * np.sin(2 * phase) + 0.05 * np.sin(5 * phase)
    return sound * ((t > 0.1) & (t < seconds - 0.1))


def write_textgrid(path: Path, seconds: float, phones: str = "HH AH0 L OW1", *, bend: float = 1.0) -> None:
    """Silence of a tenth of a second at both ends, phones between: of equal length, or with ``bend`` growing."""
    labels = phones.split()
    bounds = 0.1 + (seconds - 0.2) * np.linspace(0, 1, len(labels) + 1) ** bend
    intervals = [(0.0, bounds[0], ""), *zip(bounds, bounds[1:], labels), (bounds[-1], seconds, "")]
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n{seconds}\n<exists>\n1\n'
    tier = f'"IntervalTier"\n"phones"\n0\n{seconds}\n{len(intervals)}\n'
    path.write_text(head + tier + "".join(f'{a}\n{b}\n"{label}"\n' for a, b, label in intervals))


def add_clip(folder: Path, name: str, seconds: float, **kwargs) -> str:
    """Write ``wavs/<name>.wav`` with its TextGrid; returns its line of a list."""
    path = folder / "wavs" / f"{name}.wav"
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = glide(seconds, **kwargs)
    soundfile.write(path, wave, RATE, subtype="PCM_16")
    write_textgrid(folder / "TextGrid" / f"{name}.TextGrid", len(wave) / RATE)
    return f"wavs/{name}.wav|Hello number {name}.\n"


def make_corpus(folder: Path, n_clips: int, *, seconds: float = 1.0) -> Path:
    """``n_clips`` clips of different length and pitch, and ``train.txt``, their list."""
    lines = [
        add_clip(folder, f"c{i:03d}", seconds * (1 + i % 5 / 10), low=100 + 3 * i, high=180 + 5 * i)
        for i in range(n_clips)
    ]
    (folder / "train.txt").write_text("".join(lines))
    return folder


def features(folder: Path) -> dict[str, bytes]:
    """Everything that extraction wrote into a corpus."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".pt", ".json", ".meta", ".tmp")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def encode_aac(path: Path, wave: np.ndarray, rate: int, form: str | None = None) -> Path:
    """Write AAC, which libsndfile does not know; ``wave`` (T, 2)."""
    import av  # here, as most tests do without it

    with av.open(str(path), "w", format=form) as container:
        stream = container.add_stream("aac", rate=rate, layout="stereo")
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(wave.T, np.float32), format="fltp", layout="stereo")
        frame.sample_rate = rate
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return path
