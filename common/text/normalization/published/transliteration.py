"""The ASCII of FastPitch 1.1's published text front end, which derives from an MIT-licensed transliteration table."""

import unicodedata

from unidecode import unidecode


def _entries(text: str) -> dict[str, str]:
    """Parse "key value, key value" into a dict."""
    return dict(entry.split(" ") for entry in text.split(", "))


# What the table has of accented Latin letters: these, and all from U+00C0 to U+00FF and from U+1EA0 to U+1EF9.
_ACCENTED = "ăąāćčďđěęėēĩįīğģķłļńňņőřşšśţťũůűūųźżžĳơưșț"
_UNLIKE_UNIDECODE = {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ẞ": "SS", "Þ": "TH"}
_GREEK = dict(zip("αβγδεζηικλμνοπρσςτυφχω", "avgdeziiklmnoprsstyfxo", strict=True)) | {"θ": "th", "ξ": "ks", "ψ": "ps"}
_GREEK_ACCENTED = "άέήίόύώϊϋΐΰ"
_CYRILLIC = dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziyklmnoprstufye", strict=True)) | {
    **_entries("ё yo, ж zh, х kh, ц ts, ч ch, ш sh, щ sch, ю yu, я ya"),
    "ъ": "",
    "ь": "",
    **_entries("є ye, і i, ї yi, ґ g, ќ kj, љ lj, њ nj"),
}
_ARMENIAN = dict(zip("աբգդզէըթիլկհմյնպջռսվտրցփքօֆ", "abgdzeytilkhmynpjrsvtrcpqof", strict=True)) | {
    **_entries("ե ye, ժ zh, խ kh, ծ ts, ձ dz, ղ gh, ճ tch, շ sh, ո vo, չ ch")
}
_GEORGIAN = dict(zip("აბგდევზთიკლმნოპრსტუქყჯჰ", "abgdevztiklmnoprstuqkjh", strict=True)) | {
    **_entries("ჟ zh, ფ ph, ღ gh, შ sh, ჩ ch, ც ts, ძ dz, წ ts, ჭ tch, ხ kh")
}
_ARABIC = {
    **dict(zip("ءآأؤإئابةتجحدرزسصضطظعفقكلمنهوىي", "eaawiyabttjhdrzssdtzefqklmnhway", strict=True)),
    **dict(zip("کگپیټځڅډړږښګڼۀېٹڈڑںہھے", "kgpypzcdrgxgneetdrnhhe", strict=True)),
    **dict(zip("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹", "0123456789" * 2, strict=True)),
    **_entries("ث th, خ kh, ذ dh, ش sh, غ gh, چ ch, ژ zh, ـ _, ۍ ai"),
    **_entries("\u064e a, \u064f u, \u0650 i"),
}
_CURRENCIES = {
    **dict(zip("¢¥৳฿₡₣₥₦₩₫€₭₮₰₱₲₳₴₵₷₸₹₺₽₿﹩￠￥￦", "cYtBCFmNWsEKTSPGASCSTRLPB$cYW", strict=True)),
    **_entries("₠ CE, ₢ Cr, ₧ Pt, ₨ Rs, ₯ Dp, ₶ tt"),
}
# Letters and marks by what they look like, the last resort.
_LOOKALIKES = {
    " ": "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f",
    "'": "´ʹʻʼʽʾˈˊˋ˴\u0374\u0384՚՝\u1fbd\u1fbf\u1fef\u1ffd\u1ffe‘’‛′‵ꞌ＇｀",
    '"': "¨ʺ˝ˮ״“”‟❝❞",
    "(": "❨❲〔（［",
    ")": "❩❳〕）］",
    "*": "٭⁎∗＊",
    "+": "➕＋",
    ",": "¸؍٫‚，",
    "-": "˗۔‐‑‒–⁃−➖﹘",
    ".": "․．",
    "/": "⁁⁄∕╱⟋⧸／",
    ":": "ː˸։׃⁚∶꞉︰：",
    "<": "˂‹❮＜",
    ">": "˃›❯＞",
    "?": "Ɂʔॽ？",
    "\\": "∖⟍⧵⧹﹨＼",
    "^": "˄ˆ",
    "_": "﹍﹎﹏＿",
    "~": "˜῀⁓∼",
    "{": "❴｛",
    "}": "❵｝",
    **_entries("! ǃ！, $ ＄, % ％, & ＆, ; \u037e；, = ゠＝, @ ＠"),
    **_entries("2 Ƨ２, 3 ƷȜ３, 4 ４, 5 Ƽ５, 6 ６, 7 ７, 8 Ȣȣ８, 9 ９"),
    **_entries("A ᴀ, B ʙℬ, C ϹℂℭⅭ, D ᴅⅅⅮ, E ᴇℰ, F Ϝℱ, G ɢ, H ʜℋℌℍ, J ᴊЈ"),
    **_entries("K \u212a, L ʟℒⅬ, M ϺℳⅯ, N ɴℕ, P ᴘℙ, Q ℚ, R Ʀʀℛℜℝ, S Ѕ, T ᴛ"),
    **_entries("V ѴⅤ, X Ⅹ╳, Y ϒҮ, Z ℤℨ, a ɑ⍺, b Ƅ, c ϲᴄⅽ, d ԁⅆⅾ, e ҽ℮ℯⅇ"),
    **_entries("f ſϝẝ, g ƍɡℊ, h һℎ, i ɩɪ˛ͺӏ\u1fbeℹⅈⅰ, j ϳјⅉ, o ᴏℴ〇０Ｏ, p ϱ⍴"),
    **_entries("l ƖǀӀℐℑℓⅠⅼ∣￨１Ｉ, q ԛ, r ᴦ, s ƽѕꜱ, u ʋᴜ, v ѵᴠⅴ∨⋁, w ɯѡԝᴡ, x ×ⅹ⨯"),
    **_entries("y ɣʏүℽ, z ᴢ, ?! ‽"),
}


def _both_cases(letters: dict[str, str], *, upper: bool = False) -> dict[str, str]:
    """The table with its capitals: "Ж" -> "Zh", or all in capitals where ``upper``: "Θ" -> "TH"."""
    return letters | {one.upper(): to.upper() if upper else to.capitalize() for one, to in letters.items()}


def _by_compatibility() -> dict[str, str]:
    """Letters and digits of mathematics, in circles and in brackets, and of full width: what Unicode says they are."""
    found = {}
    for place in (*range(0x2460, 0x24EB), *range(0xFF21, 0xFF5B), *range(0x1D400, 0x1D6A4), *range(0x1D7CE, 0x1D800)):
        to = unicodedata.normalize("NFKC", chr(place))
        if 0x2474 <= place < 0x2488:
            to = to.strip("()")
        elif 0x24B6 <= place < 0x24EA:
            to = f"({to})"
        if to.isascii():
            found[chr(place)] = to
    return found


def _table() -> dict[str, str]:
    latin = [*map(chr, (*range(0xC0, 0x100), *range(0x1EA0, 0x1EFA))), *_ACCENTED, *_ACCENTED.upper(), "ı", "İ"]
    greek = _GREEK | {one: _GREEK[unicodedata.normalize("NFD", one)[0]] for one in _GREEK_ACCENTED}
    return {
        **_by_compatibility(),
        **{one: to for to, ones in _LOOKALIKES.items() for one in ones},
        **{one: unidecode(one) for one in latin if one not in "×÷"},
        **{one: to for one, to in _both_cases(greek, upper=True).items() if len(one) == 1},
        **_both_cases(_CYRILLIC),
        **_both_cases(_ARMENIAN),
        "և": "yev",
        **_GEORGIAN,
        **_ARABIC,
        **_CURRENCIES,
        **_UNLIKE_UNIDECODE,
    }


_TABLE = _table()


def to_ascii(text: str) -> str:
    """The text by the table; what the table lacks is left out: dashes, "…", "œ", "½", scripts of Asia, emoji."""
    return text if text.isascii() else "".join(one if one.isascii() else _TABLE.get(one, "") for one in text)


def left_out(text: str) -> list[str]:
    """The letters, numbers and signs of ``text`` that ``to_ascii`` leaves out; punctuation is not said."""
    lost = [one for one in text if not one.isascii() and one not in _TABLE]
    return [one for one in lost if unicodedata.category(one)[0] in "LNS"]
