"""Adapters of `common.text.options` for speaking's argparse namespaces; they go when speaking has option classes."""

import argparse
from dataclasses import fields

from common.config import TextConfig
from common.options import add_options
from common.text.options import TextOverrides, overridden

_OF_PHONEMES = ("p_arpabet", "cmudict_path", "heteronyms_path", "g2p", "g2p_language")


def add_phoneme_overrides(group: argparse._ArgumentGroup) -> None:
    """Add the options that change how a trained voice makes phonemes; each is None where it is not given."""
    others = [one.name for one in fields(TextOverrides) if one.name not in _OF_PHONEMES]
    add_options(group, TextOverrides, without=others)


def override_phonemes(args: argparse.Namespace, config: TextConfig) -> TextConfig:
    """A voice's front end with the options of ``add_phoneme_overrides``, as far as they are given."""
    return overridden(config, TextOverrides(**{name: getattr(args, name) for name in _OF_PHONEMES}))


def with_phone_features(args: argparse.Namespace, stored: TextConfig) -> TextConfig:
    """The front end of a voice that reads phonological features, with the table that is given."""
    return overridden(stored, TextOverrides(phone_features=args.phone_features))
