// The prosody table on the frame axis, and its edits: each returns a new table that shares the parts it doesn't change.
//
// A scope selects a part: {} everything, {u} an utterance, {u, from, until, grain} a range of its symbols, which is a
// phone with its marks, a syllable or a word. All versions of a first version have its utterances, words and symbols in
// the same order; only their values differ.

export const PITCH_LIMITS = [30, 1200]; // Hz
export const MOST_FRAMES = 400; // of a symbol, when set by hand
export const MOST_PAUSE = 10; // s
export const MOST_VOLUME = 4;
export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
export const sum = (values) => values.reduce((total, value) => total + value, 0);

// Rounds halves to even, as the server does.
const roundEvenly = (value) => (Math.abs(value % 1) === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

export const round = (value, digits) => Number(value.toFixed(digits));

export function memoize(compute) {
  const known = new WeakMap();
  return (key) => {
    if (!known.has(key)) known.set(key, compute(key));
    return known.get(key);
  };
}

// Returns an utterance's symbols in order: {w, word, symbol, start, end}, in frames from the utterance's start.
export const placesOf = memoize((utterance) => {
  let start = 0;
  return utterance.words.flatMap((word, w) =>
    word.symbols.map((symbol) => {
      const place = { w, word, symbol, start, end: start + symbol.frames };
      start = place.end;
      return place;
    }),
  );
});

export const framesOf = (utterance) => placesOf(utterance).at(-1)?.end ?? 0;
export const secondsToFrames = (table, seconds) => roundEvenly((seconds * table.sampling_rate) / table.hop_length);
export const pauseFrames = (table, utterance) => secondsToFrames(table, utterance.pause);
export const secondsOf = (table, frames) => (frames * table.hop_length) / table.sampling_rate;

// Returns where each utterance starts, after its leading silence: {starts: frames, frames: total}.
export const timelineOf = memoize((table) => {
  let frames = 0;
  const starts = table.utterances.map((utterance) => {
    const start = frames + secondsToFrames(table, utterance.lead ?? 0);
    frames = start + framesOf(utterance) + pauseFrames(table, utterance);
    return start;
  });
  return { starts, frames };
});

export const scopeOf = (u, { from, until, grain }) => ({ u, from, until, grain });
const isWithin = (scope, u, i) => (scope.u ?? u) === u && (scope.from ?? 0) <= i && i < (scope.until ?? Infinity);

// Keys identify an utterance's sound: equal keys, equal sounds. The silence around it doesn't count.
export const withoutSilence = (utterance) => ({ ...utterance, pause: 0, ...("lead" in utterance && { lead: 0 }) });

export const keyOf = memoize((utterance) => JSON.stringify(withoutSilence(utterance)));

const changeUtterance = (table, u, change) => ({
  ...table,
  utterances: table.utterances.map((utterance, index) => (index === u ? change(utterance) : utterance)),
});

// change(symbol, u, i) returns the values that differ.
export function changeSymbols(table, scope, change) {
  const utterances = table.utterances.map((utterance, u) => {
    if ((scope.u ?? u) !== u) return utterance;
    let i = 0;
    const words = utterance.words.map((word) => {
      const first = i;
      i += word.symbols.length;
      if ((scope.from ?? 0) >= i || first >= (scope.until ?? Infinity)) return word;
      const symbols = word.symbols.map((symbol, s) =>
        isWithin(scope, u, first + s) ? { ...symbol, ...change(symbol, u, first + s) } : symbol,
      );
      return { ...word, symbols };
    });
    return { ...utterance, words };
  });
  return { ...table, utterances };
}

export function symbolsIn(table, scope) {
  return table.utterances.flatMap((utterance, u) =>
    placesOf(utterance)
      .filter((_, i) => isWithin(scope, u, i))
      .map((place) => place.symbol),
  );
}

export const setSymbols = (table, scope, values) => changeSymbols(table, scope, () => values);
export const setPitch = (hertz) => (hertz > 0 ? round(clamp(hertz, ...PITCH_LIMITS), 2) : 0);

export const setPause = (table, u, seconds) =>
  changeUtterance(table, u, (utterance) => ({ ...utterance, pause: round(clamp(seconds, 0, MOST_PAUSE), 4) }));

export const setSpeaker = (table, scope, speaker) => ({
  ...table,
  utterances: table.utterances.map((one, u) => ((scope.u ?? u) === u ? { ...one, speaker } : one)),
});

// Returns the symbols' frames, scaled to `total` in all; a symbol that has frames keeps at least one.
function stretched(symbols, total) {
  const spoken = symbols.filter(({ frames }) => frames > 0);
  const free = sum(spoken.map(({ frames }) => frames - 1));
  const share = ({ frames }) => (free > 0 ? (frames - 1) / free : 1 / spoken.length) * (total - spoken.length);
  let [wanted, given] = [0, 0];
  return symbols.map((symbol) => {
    if (symbol.frames === 0) return 0;
    wanted += share(symbol);
    const extra = Math.round(wanted) - given;
    given += extra;
    return 1 + extra;
  });
}

export function setFrames(table, scope, total) {
  const symbols = symbolsIn(table, scope);
  const frames = stretched(symbols, Math.max(total, leastFrames(symbols)));
  return changeSymbols(table, scope, (symbol, u, i) => ({ frames: frames[i - scope.from] }));
}

export const leastFrames = (symbols) => symbols.filter(({ frames }) => frames > 0).length;
export const totalFrames = (symbols) => sum(symbols.map(({ frames }) => frames));

// Moves the border after a unit of an utterance; the next unit loses what this one gains. The last one moves the end.
export function moveBorder(table, u, units, index, frames) {
  const lengthOf = (unit) => {
    const symbols = symbolsIn(table, scopeOf(u, unit));
    return { total: totalFrames(symbols), least: leastFrames(symbols) };
  };
  const [left, next] = [units[index], units.slice(index + 1).find((unit) => lengthOf(unit).total > 0)];
  const { total, least } = lengthOf(left);
  const other = next && lengthOf(next);
  const moved = clamp(frames, least - total, next ? other.total - other.least : MOST_FRAMES * least - total);
  if (moved === 0) return table;
  const longer = setFrames(table, scopeOf(u, left), total + moved);
  return next ? setFrames(longer, scopeOf(u, next), other.total - moved) : longer;
}

// Changes the pace in whole frames; each symbol's rounding error is passed on to the next one.
export function scalePace(table, scope, factor) {
  let error = 0;
  return changeSymbols(table, scope, (symbol) => {
    if (symbol.frames === 0) return {};
    const wanted = symbol.frames / factor + error;
    const frames = clamp(Math.round(wanted), 1, MOST_FRAMES);
    error = wanted - frames;
    return { frames };
  });
}

// Symbols that are unvoiced, or have no pitch in Hz, stay so.
export const scalePitch = (table, scope, factor) =>
  changeSymbols(table, scope, ({ pitch }) => (pitch > 0 ? { pitch: setPitch(pitch * factor) } : {}));

// Scales the distance of each pitch from the scope's mean, on a logarithmic scale.
export function scaleRange(table, scope, factor) {
  const { mean } = pitchStatistics(symbolsIn(table, scope));
  return changeSymbols(table, scope, ({ pitch }) =>
    pitch > 0 ? { pitch: setPitch(Math.exp(mean + (Math.log(pitch) - mean) * factor)) } : {},
  );
}

// Volume and energy may be 0, which no factor can undo; then the first version's values are scaled.
export const scaleValue =
  (name, most, digits) =>
  (table, scope, factor, { base, value }) =>
    changeSymbols(table, scope, (symbol, u, i) => {
      if (symbol[name] === null) return {};
      const scaled = Number.isFinite(factor)
        ? symbol[name] * factor
        : placesOf(base.utterances[u])[i].symbol[name] * value;
      return { [name]: round(Math.min(scaled, most), digits) };
    });

// Returns the mean and standard deviation of the logarithm of the pitch, weighted by length.
function pitchStatistics(symbols) {
  const voiced = symbols.filter(({ pitch, frames }) => pitch > 0 && frames > 0);
  const frames = sum(voiced.map((symbol) => symbol.frames));
  if (frames === 0) return { mean: null, spread: 0 };
  const mean = sum(voiced.map((symbol) => symbol.frames * Math.log(symbol.pitch))) / frames;
  const square = sum(voiced.map((symbol) => symbol.frames * (Math.log(symbol.pitch) - mean) ** 2)) / frames;
  return { mean, spread: Math.sqrt(square) };
}

// Returns how a version differs from the first one within a scope; null for values that can't be compared.
export function compareVersions(table, base, scope) {
  const now = symbolsIn(table, scope);
  const first = symbolsIn(base, scope);
  const [pitch, before] = [pitchStatistics(now), pitchStatistics(first)];
  const total = (symbols, name) => sum(symbols.map((symbol) => symbol[name] ?? 0));
  const ratio = (one, other) => (other > 0 ? one / other : null);
  return {
    semitones: pitch.mean === null || before.mean === null ? null : (12 * (pitch.mean - before.mean)) / Math.LN2,
    range: before.spread > 0.001 ? pitch.spread / before.spread : null,
    pace: total(now, "frames") > 0 ? total(first, "frames") / total(now, "frames") : null,
    volume: ratio(total(now, "volume"), total(first, "volume")),
    energy: ratio(total(now, "energy"), total(first, "energy")),
  };
}

// Maps a frame of one version to another: the same part of the same phone.
export function mapFrame(from, to, frame) {
  const [before, after] = [timelineOf(from), timelineOf(to)];
  const u = Math.max(
    0,
    before.starts.findLastIndex((start) => start <= frame),
  );
  if (!from.utterances[u]) return 0;
  const inside = Math.max(0, frame - before.starts[u]);
  const index = placesOf(from.utterances[u]).findIndex((place) => inside < place.end);
  if (index < 0) {
    const silence = inside - framesOf(from.utterances[u]);
    const end = framesOf(to.utterances[u]);
    return after.starts[u] + end + Math.min(silence, pauseFrames(to, to.utterances[u]));
  }
  const [old, now] = [placesOf(from.utterances[u])[index], placesOf(to.utterances[u])[index]];
  return after.starts[u] + now.start + ((inside - old.start) / (old.end - old.start)) * (now.end - now.start);
}

const FORMAT = "speech-toolkit prosody 1";

// Parses a prosody table; throws if it isn't one. The server checks the values.
export function readTable(text, name) {
  let table;
  try {
    table = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: not JSON: ${error.message}`);
  }
  if (table?.format !== FORMAT)
    throw new Error(`${name}: format ${JSON.stringify(table?.format)}, expected "${FORMAT}"`);
  const hasSymbols = (word) => Array.isArray(word?.symbols);
  const isWhole = Array.isArray(table.utterances) && table.utterances.every((one) => one?.words?.every?.(hasSymbols));
  if (!isWhole) throw new Error(`${name}: expected "utterances" with "words" with "symbols"`);
  return table;
}

// For a voice without editable prosody: one utterance, with its words and the spaces between them as wide as they last.
export function tableOfWords(answer, text) {
  const { sampling_rate, hop_length, mel } = answer;
  const words = [];
  let end = 0;
  const add = (label, until) => {
    const frames = clamp(until, end, mel.frames) - end;
    if (frames > 0) words.push({ text: label, symbols: [{ symbol: "", frames, pitch: 0, energy: null, volume: 1 }] });
    end += frames;
  };
  for (const word of answer.words ?? []) {
    add("", Math.round((word.start * sampling_rate) / hop_length));
    add(word.text, Math.round((word.end * sampling_rate) / hop_length));
  }
  add("", mel.frames);
  const stamp = ++tableOfWords.count; // makes its key unique, even if its words last as long as another's
  return { sampling_rate, hop_length, utterances: [{ text, stamp, pause: 0, words }] };
}

tableOfWords.count = 0;
