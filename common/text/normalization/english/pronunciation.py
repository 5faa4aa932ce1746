"""Which words of capitals are spelled letter by letter, and which can be spoken as words."""

import re
from functools import lru_cache

from common.text.normalization.english.tables import word_set

# Said letter by letter although they could be spoken. Unpronounceable ones (FBI, BBC, HTML) need no entry.
_INITIALISMS = word_set("""
    ABS ACL ADHD AGM AI AIG AMA AOB AOL API APU ATM AUV BAE BSE CAD CEO CIA CIO CIS CIT CMO CNN COB COO CT CV DA DIY DOA
    DOB DOE DOJ DUI EDF EEC EEG EFTA EIB EKG EMI EPA EPO ERA ESA ESPN ETA EU EV FAA FAO FAQ FDA FIA GE GI GOP GUI HIE
    HIV HUD IAEA IBM ICI ICU ID IEA IEEE ILO IMDB IMO IOC IOU IP IPA IPO IQ IRA IRC IRS ISA ISO ISP IT ITV IUCN IV IVF
    KFC LA LAX LED LOL MEP MIA MIT MOD MOT NAACP NE NGO NIH NOAA NYC NYU OAP OECD OED OEM OMG OS PE PIA PO POV POW PR
    PTA QE RAF RIA RIP RNA SEC SOS SUV TBA TIA UAE UAV UCLA UEA UFO UHF UI UK UN UNHCR UPI UPS URI URL US USA USB USC
    USS USSR UV VA VAT VC VIP VOA WHO WTO YMCA YWCA
    """)
# Spoken as words although the letters look unlikely, and the words of two letters (all others are spelled).
_SPOKEN = word_set("""
    NVIDIA CUDA NASA NATO UNESCO UNICEF OPEC AIDS FIFA UEFA IKEA JSON JPEG GIF RAM ROM PIN SIM SWAT ASAP OSHA NAFTA
    SCUBA LASER RADAR SONAR COVID SARS ASCII CAPTCHA HIPAA MERS EBITDA FOMO YOLO
    AM AN AS AT AX BE BY DO EH GO HA HE HI HO IF IN IS LO MA ME MY NO OF OH ON OR OX PA SO TO UP WE YO
    MR MRS MS DR ST JR SR VS ETC HMM SHH PSST BRR
    """)
# Initialisms that are common words too: words when their neighbors are in capitals as well ("GIVE IT TO US").
AMBIGUOUS = frozenset({"IT", "US", "WHO", "ERA", "LED", "MOD", "RIP", "COB", "SEC"})

_ONSETS = word_set("""
    b bl br c ch chr cl cr d dh dr dw f fl fr g gh gl gn gr gu h j k kh kl kn kr l ll m mn n p ph phl phr pl pr ps pt q
    qu r rh s sc sch scl scr sh shr sk sl sm sn sp sph spl spr sq squ st str sv sw t th thr tr ts tw v w wh wr x y z zh
    """) | {""}
_CODAS = word_set("""
    b bb bs c ch ck cks cs ct cts d dd ds dth f ff ffs fs ft fts g gg ggs gh ghs ght ghts gn gns gs h j k ks l lb lbs ld
    lds lf lfs lfth lk lks ll lls lm lms ln lp lps ls lsh lt lth lths lts lve m mb mbs mn mp mps mpt mpts ms n nc nce
    nch nct nd nds ng ngs ngth ngths nk nks nn ns nt nth nths nts nx nz p ph phs pp ps pt pth pts q r rb rbs rc rch rd
    rds rf rfs rg rgh rk rks rl rld rlds rls rm rms rmth rn rns rnt rp rps rs rse rsh rst rsts rt rth rths rts rv s sc
    sch sh sk sks sm sms sp sps ss st sts t tch th ths ts tt tz v w wd wds wk wks wl wls wn wns ws wt wth x xt xth xts y
    z zz
    """) | {""}
_RUNS = re.compile(r"[aeiouy]+|[^aeiouy]+")


def _can_follow(cluster: str) -> bool:
    """Whether consonants between two vowels can be cut into the end of one syllable and the start of another."""
    return any(cluster[:cut] in _CODAS and cluster[cut:] in _ONSETS for cut in range(len(cluster) + 1))


@lru_cache(maxsize=16384)
def is_pronounceable(word: str) -> bool:
    """Whether English can speak the letters as a word: syllables with a vowel, possible starts, ends and joints."""
    runs = _RUNS.findall(word.lower())
    vowels = [run for run in runs if run[0] in "aeiouy"]
    if not vowels or any(len(run) > 3 for run in vowels):
        return False
    for place, run in enumerate(runs):
        if run[0] in "aeiouy":
            continue
        if place == 0:
            fits = run in _ONSETS
        elif place == len(runs) - 1:
            fits = run in _CODAS
        else:
            fits = _can_follow(run)
        if not fits:
            return False
    return True


@lru_cache(maxsize=16384)
def is_spelled(capitals: str) -> bool:
    """Whether a word of capitals is said letter by letter: FBI and TV are; NASA, WHY and IMPORTANT are not."""
    if capitals in _INITIALISMS:
        return True
    if capitals in _SPOKEN:
        return False
    return len(capitals) == 2 or not is_pronounceable(capitals)


def is_spelled_in_lower_case(word: str) -> bool:
    """The same for a part of an address, where names are in lower case too: "html" and "ibm" are, "john" is not."""
    return not any(vowel in word.lower() for vowel in "aeiouy") or (len(word) > 2 and word.upper() in _INITIALISMS)
