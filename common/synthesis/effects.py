"""Options and columns that would do nothing for what is spoken: refused, or named in a warning."""

import sys
from collections.abc import Collection, Sequence

from common.cli import option_of
from common.errors import OptionError
from common.synthesis.controls import Controls
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput

# What is read by the text front end alone; a prosody table holds its result.
_OF_TEXT = set("text_cleaners unknown_symbols lexicon p_arpabet cmudict_path heteronyms_path g2p g2p_language".split())
_COLUMNS = ("mel", "wav", "pitch", "duration", "speaker")


def check_effects(
    given: Collection[str],
    items: Sequence[SynthesisInput],
    controls: Controls,
    *,
    source: str,
    reads_text: bool = True,
    keeps_pitch: bool = False,
) -> None:
    """Refuse options, ``given`` by their destinations, that change nothing of ``items``, which are of ``source``.

    Without ``reads_text`` the items are of a prosody table; with ``keeps_pitch`` their pitch in Hz is kept.

    Raises:
        OptionError: names the option and why it has no effect.
    """
    if not reads_text and (unread := sorted(_OF_TEXT.intersection(given))):
        raise OptionError(f"{option_of(unread[0])} is for reading text, and {source} gives symbols; leave it out")
    replaced = {name for item in items for name in item.given}
    if controls.pitch_transform is not None and replaced & {"pitch", "pitch_hz"}:
        raise OptionError(f"--pitch-transform-* change the predicted pitch, but {source} gives the pitch")
    if controls.energy_transform is not None and "energy" in replaced:
        raise OptionError(f"--energy-transform-* change the predicted energy, but {source} gives the energy")
    if "max_duration" in given and "durations" in replaced:
        raise OptionError(f"--max-duration limits predicted durations, but {source} gives the durations; leave it out")
    if "pitch_mean_std_file" in given and controls.pitch_transform is None and not keeps_pitch:
        styles = [item.styles for item in items if item.styles is not None]
        if "pitch_hz" not in replaced and not any(one.changes_pitch for one in styles):
            raise OptionError(
                "--pitch-mean-std-file is for pitch in Hz, which nothing here is in: no --pitch-transform-*, markup, "
                "--prosody, --save-prosody or --plots; leave it out"
            )


def warn_unread(phrases: Sequence[Phrase], *, read: Collection[str], source: str) -> None:
    """Name on stderr the columns of a list, ``source``, that are not among those that are ``read``."""
    if unread := [name for name in _COLUMNS if name not in read and getattr(phrases[0], name) is not None]:
        print(f"warning: {source}: not read, as nothing here uses it: column {', '.join(unread)}", file=sys.stderr)
