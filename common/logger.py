"""A run's log: DLLogger's JSON lines in a file, and its readable lines on stdout."""

import json
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.files import make_folder, read_text, writing
from common.progress import print_line

PREFIX = "DLLL "  # starts every line of the JSON log
_HINT = "; choose another --log-file"
Step = tuple[int, ...]  # (epoch, iteration, iterations per epoch); (epoch,) for its summary, () for the run's


class Logger:
    """Writes a run's log; does nothing unless ``enabled``.

    A JSON line is ``DLLL`` and an object with ``timestamp`` and ``elapsedtime`` in seconds, ``type`` (``LOG`` or
    ``METADATA``), and either ``step`` and ``data`` or ``metric`` and ``metadata``. ``step`` is ``"PARAMETER"`` for the
    run's options. Non-finite numbers become the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. Lines are
    appended immediately, so that neither a kill nor a resumed run loses any.
    """

    def __init__(self, json_path: Path | None, *, stdout: bool = True, enabled: bool = True) -> None:
        """Raises OutputError if ``json_path`` can't be written, and InputError if it exists and isn't a log."""
        self.stdout = stdout and enabled
        self.metrics: dict[str, dict[str, str]] = {}  # name, format and unit of the figures on stdout
        self.started = time.time()
        self._path = json_path if enabled else None
        if self._path is not None:
            make_folder(self._path.parent, _HINT)
            self._append(self._path, "")
            if self._path.is_file():
                with self._path.open("rb") as file:
                    if file.read(len(PREFIX)) not in (b"", PREFIX.encode()):
                        raise InputError(f"{self._path}: exists, and is not a run's log{_HINT}")

    def metadata(self, metric: str, *, name: str, format: str = "{:>5.2f}", unit: str = "") -> None:
        """Show a figure on stdout after its ``name``, which may be empty: ``lrate 3.16e-06``, ``3092.31 frames/s``."""
        self.metrics[metric] = {"name": name, "format": format, "unit": unit}
        self._write("METADATA", {"metric": metric, "metadata": self.metrics[metric]})

    def parameter(self, **values: Any) -> None:
        """Log the run's options."""
        self._write("LOG", {"step": "PARAMETER", "data": _plain(values)})
        if self.stdout:
            parts = [f"{name} {_plain(value)}" for name, value in values.items()]
            print_line(f"DLL {_now()} - {' | '.join(['PARAMETER', *parts])}")

    def log(self, step: Step, data: dict[str, Any], *, stdout: bool = True) -> None:
        """Log the figures ``data`` of ``step``; with ``stdout``, also print those that have metadata."""
        data = {name: value.item() if hasattr(value, "item") else value for name, value in data.items()}
        self._write("LOG", {"step": list(step), "data": _plain(data)})
        if not (stdout and self.stdout):
            return
        parts = [f"epoch {step[0]:>4}"] if step else []
        if len(step) > 1:
            parts.append(f"iter {step[1]:>3}/{step[2]:>3}")
        for metric in filter(self.metrics.get, data):
            name, form, unit = self.metrics[metric].values()
            number = form.format(data[metric]) if isinstance(data[metric], int | float) else str(data[metric])
            parts.append(" ".join(filter(None, [name, number, unit])))
        print_line(f"DLL {_now()} - {' | '.join(parts)}")

    def _write(self, kind: str, content: dict[str, Any]) -> None:
        if self._path is not None:
            now = time.time()
            times = {"timestamp": f"{now:.6f}", "datetime": _now(), "elapsedtime": f"{now - self.started:.6f}"}
            self._append(self._path, PREFIX + json.dumps({**times, "type": kind, **content}, allow_nan=False) + "\n")

    def _append(self, path: Path, text: str) -> None:
        with writing(path, _HINT), path.open("a", encoding="utf-8") as file:
            file.write(text)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a JSON log, skipping lines that a kill cut short; same errors as `read_text`."""
    records = []
    for line in read_text(path).split("\n"):
        with suppress(json.JSONDecodeError):
            records.append(json.loads(line.removeprefix(PREFIX)))
    return records


def read_last_figures(path: Path) -> dict[str, Any]:
    """Read the final figures of the last run in a log; same errors as `read_log`."""
    figures: dict[str, Any] = {}
    for record in read_log(path):
        if record.get("step") == "PARAMETER":  # a run starts
            figures = {}
        elif record["type"] == "LOG":
            figures |= record["data"]
    return figures


def _now() -> str:
    return datetime.now().isoformat(" ", "microseconds")


def _plain(value: Any) -> Any:
    """Convert a value to strict JSON: scalar tensors to numbers, and non-finite numbers to strings."""
    text = json.dumps(value, default=lambda one: one.item() if hasattr(one, "item") else str(one))
    return json.loads(text, parse_constant=str)
