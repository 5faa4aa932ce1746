// A version as SSML: the text as it was written, with <prosody> around words that differ from the first version.

import { compareVersions, placesOf, round } from "./table.js";

const WHOLE = new Set(["sub", "say-as", "phoneme"]); // elements whose text is never split

// Returns how a word differs: attributes of <prosody>, and a speaker.
function styleOf(table, base, u, w) {
  const places = placesOf(base.utterances[u]);
  const isOwn = (one) => one.w === w;
  const scope = { u, from: places.findIndex(isOwn), until: places.findLastIndex(isOwn) + 1 };
  const { semitones, pace, volume } = compareVersions(table, base, scope);
  const percent = (factor) => `${round(100 * factor, 1)}%`;
  const attributes = {};
  if (pace !== null && Math.abs(pace - 1) > 0.005) attributes.rate = percent(pace);
  if (semitones !== null && Math.abs(semitones) > 0.02)
    attributes.pitch = `${semitones < 0 ? "" : "+"}${round(semitones, 2)}st`;
  if (volume !== null && Math.abs(volume - 1) > 0.005) {
    attributes.volume = volume > 0 ? `${volume < 1 ? "" : "+"}${round(20 * Math.log10(volume), 2)}dB` : "silent";
  }
  const speaker = table.utterances[u].speaker;
  return { attributes, speaker: speaker === base.utterances[u].speaker ? null : speaker };
}

// Returns the words in order, each with its style; an utterance's last word also has its pause if that was changed.
function spokenWords(table, base) {
  return table.utterances.flatMap((utterance, u) => {
    const indices = utterance.words.map((word, w) => w).filter((w) => utterance.words[w].text !== "");
    const pause = Math.abs(utterance.pause - base.utterances[u].pause) > 0.002 ? utterance.pause : null;
    return indices.map((w, i) => ({
      u,
      text: utterance.words[w].text,
      style: styleOf(table, base, u, w),
      pause: i === indices.length - 1 ? pause : null,
    }));
  });
}

function readSource(text) {
  const parser = new DOMParser();
  if (/<\s*speak[\s>]/.test(text)) {
    const tree = parser.parseFromString(text.trim(), "application/xml");
    if (!tree.querySelector("parsererror")) return tree;
  }
  const tree = parser.parseFromString("<speak/>", "application/xml");
  const inside = parser.parseFromString(`<speak>${text}</speak>`, "application/xml");
  if (/<[a-z]/i.test(text) && !inside.querySelector("parsererror")) return inside;
  tree.documentElement.textContent = text;
  return tree;
}

// Returns the pieces of the tree in which to search for words: text, or an element that is never split.
function piecesOf(node) {
  if (node.nodeType === Node.TEXT_NODE || node.nodeType === Node.CDATA_SECTION_NODE) return [node];
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  return WHOLE.has(node.localName) ? [node] : [...node.childNodes].flatMap(piecesOf);
}

// Returns the position [start, end) of a word in a piece, searching from an offset; null if it isn't there.
function findWord(piece, word, from) {
  const text = piece.textContent;
  if (piece.nodeType === Node.ELEMENT_NODE) {
    const shown = text.trim();
    return shown && (shown.includes(word) || word.includes(shown)) ? [0, text.length] : null;
  }
  const at = text.indexOf(word, from);
  return at < 0 ? null : [at, at + word.length];
}

// Searches from where the last word ended. A word that is divided by tags isn't found, and keeps its style.
function placeWords(pieces, words) {
  const found = [];
  let [piece, offset] = [0, 0];
  for (const word of words) {
    for (let p = piece, from = offset; p < pieces.length; p++, from = 0) {
      const range = findWord(pieces[p], word.text, from);
      if (!range) continue;
      [piece, offset] = [p, range[1]];
      found.push({ ...word, piece: p, start: range[0], end: range[1] });
      break;
    }
  }
  return found;
}

// Merges consecutive words of one style into one element.
function runsOf(places) {
  const runs = [];
  for (const place of places) {
    const last = runs.at(-1);
    const isSame = last && last.piece === place.piece && last.u === place.u && last.pause === null;
    if (isSame && JSON.stringify(last.style) === JSON.stringify(place.style)) {
      last.end = Math.max(last.end, place.end);
      last.pause = place.pause;
    } else {
      runs.push({ ...place });
    }
  }
  return runs;
}

function wrap(tree, content, { attributes, speaker }) {
  const element = (name, values, inside) => {
    const made = tree.createElementNS(tree.documentElement.namespaceURI, name);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    made.append(inside);
    return made;
  };
  let node = content;
  if (Object.keys(attributes).length) node = element("prosody", attributes, node);
  return speaker === null ? node : element("voice", { name: speaker }, node);
}

const AFTER = /^[^\s\p{L}\p{N}]*/u; // punctuation
const BEFORE = /[^\s\p{L}\p{N}]*$/u;

// Splits a piece's text, and wraps the parts that differ in elements. Another speaker's part includes punctuation.
function divideText(tree, content, runs) {
  const parts = tree.createDocumentFragment();
  let done = 0;
  for (const { start, end, style, pause } of runs) {
    const isOther = style.speaker !== null;
    const from = isOther ? start - BEFORE.exec(content.slice(done, start))[0].length : start;
    const until = isOther ? end + AFTER.exec(content.slice(end))[0].length : end;
    parts.append(content.slice(done, from), wrap(tree, tree.createTextNode(content.slice(from, until)), style));
    done = until;
    if (pause === null) continue;
    const rest = AFTER.exec(content.slice(done))[0];
    parts.append(rest, silence(tree, pause));
    done += rest.length;
  }
  parts.append(content.slice(done));
  return parts;
}

function silence(tree, seconds) {
  const made = tree.createElementNS(tree.documentElement.namespaceURI, "break");
  made.setAttribute("time", `${Math.round(1000 * seconds)}ms`);
  return made;
}

export function writeSsml(text, table, base) {
  const tree = readSource(text);
  const pieces = piecesOf(tree.documentElement);
  const runs = runsOf(placeWords(pieces, spokenWords(table, base)));
  for (const [index, piece] of pieces.entries()) {
    const own = runs.filter((run) => run.piece === index);
    if (own.length === 0) continue;
    if (piece.nodeType !== Node.ELEMENT_NODE) {
      piece.replaceWith(divideText(tree, piece.textContent, own));
      continue;
    }
    const pause = own.at(-1).pause;
    piece.replaceWith(
      wrap(tree, piece.cloneNode(true), own[0].style),
      ...(pause === null ? [] : [silence(tree, pause)]),
    );
  }
  return new XMLSerializer().serializeToString(tree.documentElement);
}
