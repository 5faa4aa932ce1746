"""Adapters of `common.text.options` for callers with an argparse namespace; they go with their last caller."""

import argparse
from collections.abc import Sequence
from dataclasses import fields

from common.config import TextConfig
from common.options import add_options, read_options
from common.text.arpabet import with_given_files as with_given_files
from common.text.options import (
    FeatureTextOptions,
    TextOptions,
    TextOverrides,
    options_of_text as options_of_text,
    overridden,
    text_config,
    written_options as written_options,
)
from common.text.teacher import (
    TEACHER as TEACHER,
    StoredTeacher as StoredTeacher,
    read_teacher as read_teacher,
    text_of_teacher as text_of_teacher,
)

_OF_PHONEMES = ("p_arpabet", "cmudict_path", "heteronyms_path", "g2p", "g2p_language")


def add_text_arguments(parser: argparse.ArgumentParser, *, features: bool = False) -> None:
    """Add the options that say how a transcript becomes symbol ids, or with ``features`` phonological features too."""
    add_options(parser.add_argument_group("text"), FeatureTextOptions if features else TextOptions)


def text_config_from_args(args: argparse.Namespace, *, speakers: Sequence[str] = ()) -> TextConfig:
    """The ``TextConfig`` of parsed options; raises as `text_config`."""
    kind = FeatureTextOptions if hasattr(args, "phone_features") else TextOptions
    return text_config(read_options(args, kind), speakers=speakers)


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
