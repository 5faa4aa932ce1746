// One utterance's part of the picture: its words, phones, mel, curve of pitch, and handles.

import { make, place } from "./dom.js";
import {
  clamp,
  framesOf,
  leastFrames,
  MOST_FRAMES,
  MOST_PAUSE,
  pauseFrames,
  PITCH_LIMITS,
  placesOf,
  round,
  secondsOf,
  totalFrames,
} from "./table.js";
import { carrierOf, labelOf, unitsOf } from "./units.js";

// Returns a unit's name: "HH in Hello", a pause or comma with its neighbor, or a word by itself.
export function describe(utterance, unit) {
  const { w, word } = placesOf(utterance)[unit.head];
  if (unit.grain === "word" && word.text) return word.text;
  const name = labelOf(utterance, unit) || "space";
  if (word.text) return `${name} in ${word.text}`;
  const before = utterance.words.slice(0, w).findLast((one) => one.text);
  const after = utterance.words.slice(w).find((one) => one.text);
  return before ? `${name} after ${before.text}` : after ? `${name} before ${after.text}` : name;
}

const LETTER = 7.4; // px, of the smallest labels

// Returns the pixels per frame at which an utterance's words are legible.
export const roomForWords = (utterance) =>
  utterance.words.reduce((most, { text, symbols }) => {
    const frames = totalFrames(symbols);
    return frames > 0 ? Math.max(most, (text.length * LETTER) / frames) : most;
  }, 0);

// One utterance's part of the picture, made once for all of its versions. Its handles move units of kind `grain`.
export class UtteranceView {
  constructor(u, utterance, grain) {
    this.units = unitsOf(utterance, grain);
    this.words = make("div", {
      role: "listbox",
      class: "words-lane",
      "aria-label": `Words of sentence ${u + 1}`,
      "aria-orientation": "horizontal",
    });
    this.phones = make("div", {
      role: "listbox",
      class: "phones-lane",
      "aria-label": `Sounds of sentence ${u + 1}`,
      "aria-orientation": "horizontal",
    });
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.curve = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.curve.setAttribute("aria-hidden", "true");
    this.curve.setAttribute("preserveAspectRatio", "none");
    for (const name of ["first", "halo", "pitch"]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", name);
      this.curve.append(path);
    }
    this.mel = make(
      "div",
      { class: "mel" },
      this.canvas,
      this.curve,
      make("span", { class: "note", "aria-hidden": "true" }, "not spoken yet"),
    );
    this.borders = make("div", { class: "borders-lane" });
    this.element = make("div", { class: "utterance" }, this.words, this.phones, this.mel, this.borders);
    const [option, handle] = [
      { role: "option", tabindex: "-1", "data-u": u },
      { role: "slider", tabindex: "-1", "data-u": u },
    ];
    this.wordOptions = utterance.words.map((word, w) => {
      if (word.text === "") return null;
      const made = make(
        "div",
        { ...option, class: "word", "data-kind": "word", "data-w": w, title: word.text },
        word.text,
      );
      place(made, { letters: word.text.length });
      this.words.append(made);
      return made;
    });
    this.parts = this.units.map((unit, i) => {
      const at = { "data-i": i };
      const name = describe(utterance, unit);
      const label = labelOf(utterance, unit);
      const isOutside = placesOf(utterance)[unit.head].word.text === "";
      const phone = make("div", { ...option, ...at, class: "phone", "data-kind": "phone", "aria-label": name, title: name }, label);
      phone.classList.toggle("outside", isOutside);
      place(phone, { letters: Math.max(1, label.length) });
      const pitch = make("div", {
        ...handle,
        ...at,
        class: "handle pitch",
        "data-kind": "pitch",
        "aria-orientation": "vertical",
        "aria-label": `pitch of ${name}`,
      });
      pitch.classList.toggle("outside", isOutside);
      const border = make("div", {
        ...handle,
        ...at,
        class: "handle border",
        "data-kind": "border",
        "aria-label": `end of ${name}`,
      });
      this.phones.append(phone);
      this.mel.append(pitch);
      this.borders.append(border);
      return { phone, pitch, border };
    });
    this.pause = make("div", {
      ...handle,
      class: "handle pause",
      "data-kind": "pause",
      "aria-label": `pause after sentence ${u + 1}`,
    });
    this.silence = make("div", { class: "silence", "aria-hidden": "true" });
    this.element.append(this.silence, this.pause);
  }

  update({ table, base, u, start, axis, shaped, isLast }) {
    const utterance = table.utterances[u];
    const places = placesOf(utterance);
    const frames = framesOf(utterance);
    const silence = pauseFrames(table, utterance);
    place(this.element, { at: start, for: frames });
    const lengths = this.units.map(({ from, until }) => places.slice(from, until).map((one) => one.symbol));
    const lasts = lengths.findLastIndex((symbols) => totalFrames(symbols) > 0);
    this.units.forEach((unit, i) => {
      const next = lengths.slice(i + 1).find((symbols) => totalFrames(symbols) > 0);
      this.updatePart(this.parts[i], unit, { utterance, axis, isEnd: i === lasts, table, own: lengths[i], next });
    });
    this.wordOptions.forEach((option, w) => {
      const own = option && places.filter((one) => one.w === w);
      if (own?.length) place(option, { at: own[0].start, for: own.at(-1).end - own[0].start });
    });
    place(this.silence, { at: frames, for: silence });
    this.silence.textContent = silence > 0 ? `${round(utterance.pause, 2)} s` : "";
    this.pause.hidden = (isLast && silence === 0) || !shaped;
    place(this.pause, { at: frames + silence });
    setRange(this.pause, { now: utterance.pause, low: 0, high: MOST_PAUSE, text: `${round(utterance.pause, 2)} s` });
    this.curve.setAttribute("viewBox", `0 0 ${Math.max(1, frames)} 100`);
    const [first, ...drawn] = this.curve.children;
    first.setAttribute("d", shaped ? curveOf(stretchedPitch(places, placesOf(base.utterances[u])), axis) : "");
    for (const path of drawn)
      path.setAttribute(
        "d",
        shaped
          ? curveOf(
              places.map((one) => [one, one.symbol.pitch]),
              axis,
            )
          : "",
      );
  }

  // Labels that don't fit become a dot; a letter with an ellipsis would say less.
  hideTight(frame) {
    for (const label of [...this.wordOptions, ...this.parts.map(({ phone }) => phone)]) {
      const [room, letters] = ["--for", "--letters"].map((name) => Number(label?.style.getPropertyValue(name)));
      label?.classList.toggle("tight", room * frame < letters * LETTER);
    }
  }

  updatePart({ phone, pitch, border }, unit, { utterance, axis, isEnd, table, own, next }) {
    const [places, frames, least] = [placesOf(utterance), totalFrames(own), leastFrames(own)];
    const [start, end] = [places[unit.from].start, places[unit.until - 1].end];
    const carrier = carrierOf(utterance, unit);
    const hertz = carrier?.symbol.pitch ?? 0;
    for (const element of [phone, pitch, border]) element.hidden = frames === 0;
    place(phone, { at: start, for: frames });
    if (carrier) place(pitch, { at: (carrier.start + carrier.end) / 2, top: `${heightOf(hertz, axis)}%` });
    place(border, { at: end });
    if (!(hertz > 0)) pitch.hidden = true;
    setRange(pitch, { now: hertz, low: PITCH_LIMITS[0], high: PITCH_LIMITS[1], text: `${Math.round(hertz)} Hz` });
    const most = isEnd || !next ? MOST_FRAMES * least : frames + totalFrames(next) - leastFrames(next);
    const text = `${Math.round(1000 * secondsOf(table, frames))} ms`;
    setRange(border, { now: frames, low: least, high: most, text });
  }

  // `spoken` is the clip's utterance; each phone's mel is stretched to its length in `utterance`.
  paint({ clip, spoken, image }, utterance) {
    const [old, now] = [placesOf(spoken), placesOf(utterance)];
    this.canvas.width = Math.max(1, framesOf(utterance));
    this.canvas.height = clip.n_mels;
    const context = this.canvas.getContext("2d");
    now.forEach(({ start, symbol }, i) => {
      if (symbol.frames === 0 || old[i].symbol.frames === 0) return;
      context.drawImage(
        image,
        old[i].start,
        0,
        old[i].symbol.frames,
        clip.n_mels,
        start,
        0,
        symbol.frames,
        clip.n_mels,
      );
    });
  }
}

function setRange(element, { now, low, high, text }) {
  element.setAttribute("aria-valuenow", round(now, 2));
  element.setAttribute("aria-valuemin", Math.min(low, now));
  element.setAttribute("aria-valuemax", Math.max(high, now));
  element.setAttribute("aria-valuetext", text);
}

// Returns percent from the top, on a logarithmic scale.
export const heightOf = (pitch, [low, high]) =>
  pitch > 0 ? clamp(100 * (1 - Math.log(pitch / low) / Math.log(high / low)), 0, 100) : 100;

// Returns the first version's pitch at this version's symbols.
const stretchedPitch = (places, first) => places.map((one, i) => [one, first[i].symbol.pitch]);

// A smooth line through the middle of each voiced phone.
function curveOf(pitched, axis) {
  let [path, last] = ["", null];
  for (const [{ start, end, symbol }, pitch] of pitched) {
    if (symbol.frames === 0) continue;
    if (!(pitch > 0)) {
      if (last) path += `H${last.end}`;
      last = null;
      continue;
    }
    const [x, y] = [(start + end) / 2, round(heightOf(pitch, axis), 2)];
    const middle = last && (last.x + x) / 2;
    path += last ? `C${middle} ${last.y} ${middle} ${y} ${x} ${y}` : `M${start} ${y}H${x}`;
    last = { x, y, end };
  }
  return last ? `${path}H${last.end}` : path;
}
