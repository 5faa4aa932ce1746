// What survives a reload: the text, the versions with their history, and the takes; their sound is made again.

import { $ } from "./dom.js";

const TEXT_KEY = "studio-text";
export const SESSION_KEY = "studio-session";

// Returns false if the browser's storage is disabled or full.
function store(key, value) {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

export function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export const keepText = () => store(TEXT_KEY, $("text").value);

export function restoreText() {
  $("text").value = stored(TEXT_KEY) ?? "";
}

// Versions share most of their utterances, so each utterance is written once and tables hold its index.
function packSession({ version, undo, redo, takes, count }) {
  const [numbers, utterances] = [new Map(), []];
  const numberOf = (utterance) => {
    if (!numbers.has(utterance)) numbers.set(utterance, utterances.push(utterance) - 1);
    return numbers.get(utterance);
  };
  const packTable = (table) => ({ ...table, utterances: table.utterances.map(numberOf) });
  const pack = (one) => ({ ...one, base: packTable(one.base), table: packTable(one.table) });
  const kept = (versions) => versions.filter((one) => one.shaped).map(pack);
  const shown = version?.shaped ? pack(version) : null;
  const rows = takes
    .filter((take) => take.version.shaped)
    .map(({ title, detail, version }) => ({ title, detail, version: pack(version) }));
  const histories = { undo: kept(undo), redo: kept(redo) };
  return JSON.stringify({ version: shown, ...histories, takes: rows, count, utterances });
}

export function unpackSession(text) {
  const { utterances, ...packed } = JSON.parse(text);
  const bases = new Map(); // shared by the versions of one first version
  const unpackTable = (table) => ({ ...table, utterances: table.utterances.map((number) => utterances[number]) });
  const unpack = (one) => {
    const key = one.base.utterances.join();
    if (!bases.has(key)) bases.set(key, unpackTable(one.base));
    const base = bases.get(key);
    return { ...one, base, table: one.table.utterances.join() === key ? base : unpackTable(one.table) };
  };
  return {
    version: packed.version && unpack(packed.version),
    undo: packed.undo.map(unpack),
    redo: packed.redo.map(unpack),
    takes: packed.takes.map((take) => ({ ...take, version: unpack(take.version) })),
    count: packed.count,
  };
}

// Stores as much as fits: first drops the history, then takes, then everything but the text.
export function storeSession(all) {
  keepText();
  const fewer = [40, 10, 3, 0].map((most) => ({ ...all, undo: [], redo: [], takes: all.takes.slice(0, most) }));
  const tries = [all, ...fewer];
  if (!tries.some((one) => store(SESSION_KEY, packSession(one)))) forgetSession();
}

export function forgetSession() {
  try {
    localStorage.removeItem(SESSION_KEY);
  } catch {
    // Without storage, there is nothing to remove.
  }
}
