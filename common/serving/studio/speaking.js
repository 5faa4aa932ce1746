// Requests speech from the server, and plays it.

import { $ } from "./dom.js";
import { clearError, fail, say, show } from "./messages.js";
import { askSpeech } from "./server.js";
import { cutAnswer, piecesToPlay } from "./sound.js";
import {
  clipsOf,
  dropClips,
  keepClip,
  keepSession,
  mapSeconds,
  picture,
  player,
  remember,
  render,
  shownTable,
  soundKey,
  state,
  takes,
} from "./studio.js";
import { placesOf, secondsOf, tableOfWords, timelineOf, withoutSilence } from "./table.js";

const MOST_SYMBOLS = 1500; // of a request

// Runs one request; a newer one or the button stops it. Returns undefined if it failed.
export async function whileBusy(what, work) {
  state.request?.abort();
  const request = new AbortController();
  state.request = request;
  clearError();
  say(what);
  $("busy").hidden = false;
  try {
    return await work(request.signal);
  } catch (error) {
    if (error.name === "AbortError") return state.request === request ? say("Stopped") : undefined;
    say("");
    if (error.status === 401) askForKey();
    return fail(error.message);
  } finally {
    if (state.request === request) {
      state.request = null;
      $("busy").hidden = $("progress").hidden = true;
    }
  }
}

function showProgress(done, all) {
  $("progress").hidden = all < 2;
  Object.assign($("progress"), { value: done, max: all });
  if (all > 1) show(`${done} of ${all} sentences`);
}

export async function speakText() {
  const text = $("text").value.trim();
  if (!text) {
    $("text").focus();
    return fail("There is no text yet. Type a sentence first.");
  }
  await speakNew({ input: text }, { text, said: `“${shorten(text)}”` });
}

// Speaks a new first version, which is shown and played as its sentences arrive.
export async function speakNew(fields, { text, said, voice = $("voice").value, speaker = $("speaker").value }) {
  player.wake();
  player.pause();
  const grown = { version: null, warning: null };
  const own = speaker && fields.input ? { voice: speaker } : {};
  await whileBusy("Speaking…", async (signal) => {
    for await (const part of askSpeech({ model: voice, ...fields, ...own }, signal)) {
      if (grown.version && grown.version !== state.version) return; // another one is shown now
      addPart(grown, part, { text, said, voice });
    }
  });
  if (!grown.version || grown.version !== state.version) return;
  state.isGrowing = false;
  player.finish();
  takes.add(grown.version);
  dropClips();
  keepSession();
  render();
  const { starts, frames } = timelineOf(grown.version.table);
  if ($("error").hidden && $("status").textContent !== "Stopped") {
    const seconds = secondsOf(grown.version.table, frames).toFixed(2);
    const sentences = starts.length > 1 ? `, ${starts.length} sentences` : "";
    say(`Spoken: ${seconds} s${sentences}${grown.warning ? `; ${grown.warning}` : ""}`);
  }
}

// Adds a spoken utterance to the shown version, and to the sound being played.
function addPart(grown, part, { text, said, voice }) {
  const before = grown.version;
  const table = part.prosody ?? tableOfWords(part, text);
  const [clip] = cutAnswer(part, table);
  const base = before ? { ...table, utterances: [...before.base.utterances, ...table.utterances] } : table;
  const version = { text, voice, shaped: part.prosody !== null, base, table: base, said };
  keepClip(version, table.utterances[0], clip);
  grown.version = version;
  grown.warning ??= part.warning;
  if (before) state.version = version;
  else remember(version);
  state.isGrowing = true;
  const pieces = piecesToPlay(base, clipsOf(version, base));
  if (before && player.source === before.base) player.extend(base, pieces);
  if (!before) playShown(0);
  if (player.source === base) player.isGrowing = true;
  render();
  showProgress(part.part + 1, part.n_parts);
  if (!before && document.activeElement === $("speak")) $("play").focus({ preventScroll: true });
}

const shorten = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);

// Requests the sentences that have no sound yet, and keeps the others; calls onPart() for each. Returns whether all
// sentences have sound.
export async function speakChanges(version = state.version, table = shownTable(), onPart = () => {}) {
  const missing = table.utterances.filter((one) => !state.clips.has(soundKey(version, one)));
  if (missing.length === 0) return true;
  const count = missing.length > 1 ? `${missing.length} sentences` : table.utterances.length > 1 ? "1 sentence" : "it";
  let n_spoken = 0;
  const done = await whileBusy(`Speaking ${count} with the changes…`, async (signal) => {
    for (const utterances of inRequests(missing)) {
      const wanted = { ...table, utterances: utterances.map(withoutSilence) };
      let index = 0;
      for await (const part of askSpeech({ model: version.voice, prosody: wanted }, signal)) {
        const utterance = wanted.utterances[index++];
        keepClip(version, utterance, cutAnswer(part, { ...wanted, utterances: [utterance] })[0]);
        if (missing.length > 1) showProgress(++n_spoken, missing.length);
        onPart();
      }
    }
    return true;
  });
  if (done) say(`Spoken with the changes: ${count === "it" ? "the sentence" : count}`);
  dropClips();
  return done === true;
}

// Groups utterances into requests that are well within the server's limit.
function inRequests(utterances) {
  const groups = [];
  let size = Infinity;
  for (const utterance of utterances) {
    size += placesOf(utterance).length;
    if (size > MOST_SYMBOLS) {
      groups.push([]);
      size = placesOf(utterance).length;
    }
    groups.at(-1).push(utterance);
  }
  return groups;
}

async function listen() {
  player.wake();
  const { version } = state;
  const table = shownTable();
  const changed = clipsOf(version, table).findIndex((clip) => !clip);
  if (changed < 0) return playShown(state.cursor);
  const isShown = () => state.version === version && shownTable() === table;
  const spoken = await speakChanges(version, table, () => isShown() && playMore(version, table, changed));
  player.finish();
  if (isShown() && spoken) takes.add(version);
  keepSession();
  render();
}

// Plays a table from an utterance on, as far as it has sound.
function playMore(version, table, first) {
  const pieces = piecesToPlay(table, clipsOf(version, table));
  if (player.isGrowing && player.source === table) player.extend(table, pieces);
  else playShown(secondsOf(table, timelineOf(table).starts[first]));
  player.isGrowing = true;
  render();
}

function loadShown(seconds) {
  const table = shownTable();
  state.take = null;
  player.load(table, piecesToPlay(table, clipsOf(state.version, table)), table.sampling_rate, seconds);
}

function playShown(seconds, until) {
  player.pause();
  picture.home = null;
  loadShown(seconds);
  player.play(until);
}

export async function playPart(from, until) {
  player.wake();
  const table = shownTable();
  if (!(await speakChanges()) || shownTable() !== table) return;
  render();
  playShown(secondsOf(table, from), secondsOf(table, until));
}

export function togglePlay() {
  if (!state.version) return;
  if (player.isPlaying && state.take === null) player.pause();
  else listen();
}

// Switches between the first and the current version; playback continues at the same phone.
export async function compare(which) {
  if (!state.version || state.showing === which) return;
  const before = shownTable();
  const seconds = player.source === before ? player.position : (state.cursor ?? 0);
  const wasPlaying = player.isPlaying && state.take === null;
  player.pause();
  state.showing = which;
  state.cursor = mapSeconds(before, shownTable(), seconds);
  render();
  say(which === "first" ? "First version" : "Current version");
  if (wasPlaying && (await speakChanges())) {
    render();
    playShown(state.cursor);
  }
}

// ---- takes

export async function playTake(take) {
  const wasPlaying = state.take === take && player.isPlaying;
  player.wake();
  player.pause();
  if (wasPlaying) return;
  const { version } = take;
  if (!(await speakChanges(version, version.table))) return;
  player.load(take, piecesToPlay(version.table, clipsOf(version, version.table)), version.table.sampling_rate, 0);
  state.take = take;
  player.play();
  takes.render(state.version, take);
}

export function restoreTake({ version, title }) {
  remember({ ...version, said: title });
  say(`${title} restored`);
}

function askForKey() {
  $("key-form").hidden = false;
  $("key").focus();
}
