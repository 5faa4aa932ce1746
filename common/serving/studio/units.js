// Units of an utterance that are edited as a whole: phones with their marks, syllables, words.
//
// Marks of stress, length, tone and word ends are separate symbols in a voice's alphabet, but make no sound of their
// own, so each belongs to its phone.

import { memoize, placesOf, scalePitch, scopeOf, setPitch, setSymbols } from "./table.js";

export const GRAINS = ["phone", "syllable", "word"];
const MARK_BEFORE = /^[ˈˌ]$/;
const MARK_AFTER = /^([ːˑ˞ʰʲʷˠˤᵝʼ˥˦˧˨˩1-9#\s]|\p{M}+)$/u;
const VOWEL = /^(@?[AEIOU][A-Z][0-2]?|[ɑɘɞɤɵʉaeiouyæøœɒɔəɜɛɨɪɯɶʊɐʌʏɚɝAEIOUY])$/;
const GLIDE = /^[ɪʊ]$/; // ends a diphthong
const SYLLABIC = "\u0329"; // marks a consonant that is a syllable's nucleus
const SONORITY = [/^@?(NG|ŋ)$/, /^@?[jwɹɻlrɾɥʋʎɭɫʟʀLRWY]$/, /^@?[mnɲɳɱɴMN]$/]; // others are least sonorous
const SIBILANT = /^@?[szʃS]$/;

// Units are {from, until, grain, w, head}: a range of symbols, their word's index, and the symbol that stands for them.
export const phonesOf = memoize((utterance) => {
  const places = placesOf(utterance);
  const units = [];
  let from = 0;
  places.forEach(({ symbol, w }, i) => {
    const last = units.at(-1);
    const isMark = symbol.symbol.length === 1 ? MARK_AFTER.test(symbol.symbol) : /^\p{M}+$/u.test(symbol.symbol);
    if (last && isMark && from === i) {
      last.until = from = i + 1;
    } else if (i === places.length - 1 || !(MARK_BEFORE.test(symbol.symbol) || (isMark && !last))) {
      units.push({ from, until: i + 1, grain: "phone", w, head: i });
      from = i + 1;
    }
  });
  return units;
});

const symbolAt = (utterance, i) => placesOf(utterance)[i].symbol.symbol;

const isVowel = (utterance, { from, until, head }) =>
  VOWEL.test(symbolAt(utterance, head)) ||
  placesOf(utterance)
    .slice(from, until)
    .some(({ symbol }) => symbol.symbol.includes(SYLLABIC));

// Returns a consonant's sonority, which rises toward the vowel at the start of a syllable.
function sonority(symbol) {
  const found = SONORITY.findIndex((kind) => kind.test(symbol));
  return found < 0 ? 1 : found === 0 ? Infinity : 4 - found;
}

// Returns how many of the phones between two vowels belong to the first vowel's syllable.
function codaLength(symbols) {
  let start = symbols.length;
  while (start > 0) {
    const [one, next] = [symbols[start - 1], symbols[start]];
    const opens = next === undefined ? sonority(one) < Infinity : sonority(one) < sonority(next);
    if (!opens && !(next !== undefined && SIBILANT.test(one) && sonority(next) === 1)) break;
    start -= 1;
  }
  return start;
}

const syllablesOf = memoize((utterance) => {
  const phones = phonesOf(utterance);
  return groupBy(phones, ({ w }) => w).flatMap((own) => {
    const middles = [];
    own.forEach((unit, i) => {
      if (!isVowel(utterance, unit)) return;
      const last = middles.at(-1);
      const isDiphthong =
        last?.length === 1 && last[0] === i - 1 && unit.from === unit.head && isBare(own[i - 1]) && isGlide(unit);
      if (isDiphthong) last.push(i);
      else middles.push([i]);
    });
    const cuts = middles.slice(1).map((middle, m) => {
      const before = middles[m].at(-1) + 1;
      const between = own.slice(before, middle[0]).map(({ head }) => symbolAt(utterance, head));
      return before + codaLength(between);
    });
    return [0, ...cuts].map((cut, m) =>
      joined(own.slice(cut, cuts[m] ?? own.length), "syllable", own[middles[m]?.[0] ?? 0]),
    );
  });

  function isBare({ head, until }) {
    return until === head + 1;
  }
  function isGlide({ head }) {
    return GLIDE.test(symbolAt(utterance, head));
  }
});

// A word's stressed syllable stands for it.
export const wordsOf = memoize((utterance) =>
  groupBy(syllablesOf(utterance), ({ w }) => w).map((own) => {
    const stressed = own.find(({ from, head }) =>
      placesOf(utterance)
        .slice(from, head + 1)
        .some(({ symbol }) => /^ˈ$|1$/.test(symbol.symbol)),
    );
    return joined(own, "word", stressed ?? own[0]);
  }),
);

const joined = (units, grain, { head }) => ({ ...units[0], until: units.at(-1).until, grain, head });

function groupBy(items, keyOf) {
  const groups = [];
  for (const item of items) {
    if (groups.length && keyOf(groups.at(-1)[0]) === keyOf(item)) groups.at(-1).push(item);
    else groups.push([item]);
  }
  return groups;
}

export const unitsOf = (utterance, grain) => ({ phone: phonesOf, syllable: syllablesOf, word: wordsOf })[grain](utterance);

// Returns the symbol whose pitch a unit's handle shows: its head, or the longest one with a pitch.
export function carrierOf(utterance, { from, until, head }) {
  const places = placesOf(utterance);
  if (places[head].symbol.pitch > 0) return places[head];
  const voiced = places.slice(from, until).filter(({ symbol }) => symbol.pitch > 0 && symbol.frames > 0);
  return voiced.reduce((best, one) => (one.symbol.frames > best.symbol.frames ? one : best), voiced[0] ?? null);
}

// Sets the pitch of a unit's carrier, and scales the rest of the unit alike; 0 removes the pitch.
export function setUnitPitch(table, u, unit, hertz) {
  const carrier = carrierOf(table.utterances[u], unit);
  const scope = scopeOf(u, unit);
  if (!carrier || !(hertz > 0)) return setSymbols(table, scope, { pitch: setPitch(hertz) });
  return scalePitch(table, scope, setPitch(hertz) / carrier.symbol.pitch);
}

// Returns the label of a unit's phones, without the marks of word ends.
export const labelOf = (utterance, { from, until }) =>
  placesOf(utterance)
    .slice(from, until)
    .map(({ symbol }) => symbol.symbol.replace(/^@/, ""))
    .join("")
    .replace(/[#\s]+$/, "")
    .trim();
