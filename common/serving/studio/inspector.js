// Sliders and fields for the selection: everything, a sentence, a word or a phone, relative to the first version.

import { $, fillSelect, make } from "./dom.js";
import { say } from "./messages.js";
import {
  changeSymbols,
  clamp,
  compareVersions,
  MOST_PAUSE,
  MOST_VOLUME,
  PITCH_LIMITS,
  placesOf,
  round,
  scalePace,
  scalePitch,
  scaleRange,
  scaleValue,
  scopeOf,
  secondsOf,
  secondsToFrames,
  setFrames,
  setPause,
  setSpeaker,
  setSymbols,
  symbolsIn,
  totalFrames,
} from "./table.js";
import { carrierOf, GRAINS, labelOf, setUnitPitch, unitsOf } from "./units.js";
import { describe } from "./utterance.js";

const percent = (factor) => `${Math.round(100 * factor)} %`;
const LOGARITHM = { toSlider: Math.log2, ofSlider: (value) => 2 ** value }; // half and double are equally far from 1

// `apply` changes a table's measured value from `from` to `value`. Low, high and step are the slider's.
export const SLIDERS = [
  {
    name: "semitones",
    label: "Pitch",
    low: -12,
    high: 12,
    step: 0.1,
    neutral: 0,
    format: (value) => `${value > 0.04 ? "+" : ""}${(Math.abs(value) < 0.05 ? 0 : value).toFixed(1)} semitones`,
    apply: (table, scope, { value, from }) => scalePitch(table, scope, 2 ** ((value - from) / 12)),
  },
  {
    name: "range",
    label: "Melody",
    low: -2,
    high: 2,
    step: 0.02,
    neutral: 1,
    format: percent,
    ...LOGARITHM,
    apply: (table, scope, { value, from }) => scaleRange(table, scope, value / Math.max(from, 0.01)),
  },
  {
    name: "pace",
    label: "Pace",
    low: -1,
    high: 1,
    step: 0.01,
    neutral: 1,
    format: percent,
    ...LOGARITHM,
    apply: (table, scope, { value, from }) => scalePace(table, scope, value / from),
  },
  {
    name: "volume",
    label: "Volume",
    low: 0,
    high: 2,
    step: 0.01,
    neutral: 1,
    format: percent,
    apply: (table, scope, { value, from, base }) =>
      scaleValue("volume", MOST_VOLUME, 3)(table, scope, value / from, { base, value }),
  },
  {
    name: "energy",
    label: "Energy",
    low: 0,
    high: 2,
    step: 0.01,
    neutral: 1,
    format: percent,
    apply: (table, scope, { value, from, base }) =>
      scaleValue("energy", Infinity, 4)(table, scope, value / from, { base, value }),
  },
];

// `change` sets a value of the selection; `write` converts a table's value to the field's.
const FIELDS = [
  {
    name: "pitch",
    label: "Pitch (Hz, 0: unvoiced)",
    step: 1,
    low: 0,
    least: PITCH_LIMITS[0],
    high: PITCH_LIMITS[1],
    write: (hertz) => round(hertz, 1),
    change: (table, scope, value, unit) => setUnitPitch(table, scope.u, unit, value),
  },
  {
    name: "frames",
    label: "Length (ms)",
    step: 1,
    low: 1,
    high: 5000,
    write: (frames, table) => Math.round(1000 * secondsOf(table, frames)),
    change: (table, scope, value) => setFrames(table, scope, secondsToFrames(table, value / 1000)),
  },
  {
    name: "volume",
    label: "Volume (1: unchanged)",
    step: 0.05,
    low: 0,
    high: MOST_VOLUME,
    change: (table, scope, value) => setSymbols(table, scope, { volume: round(value, 3) }),
  },
  {
    name: "energy",
    label: "Energy (voice’s unit)",
    step: 0.05,
    low: 0,
    high: 20,
    change: (table, scope, value) => setSymbols(table, scope, { energy: round(value, 4) }),
  },
];

// edits: as for `Handles`, plus base(); onSelect(scope).
const sameUnit = ({ from, until }, utterance, grain) =>
  unitsOf(utterance, grain).some((one) => one.from === from && one.until === until);

export class Inspector {
  constructor(edits, { onSelect }) {
    Object.assign(this, { edits, onSelect, scope: {} });
    this.sliders = SLIDERS.map((slider) => this.makeSlider(slider));
    this.fields = FIELDS.map((field) => this.makeField({ write: (value) => value, ...field }));
    this.pause = this.makeField({ name: "pause", label: "Pause after it (s)", step: 0.05, low: 0, high: MOST_PAUSE });
    $("reset").addEventListener("click", () => this.reset());
    $("own-speaker").addEventListener("change", (event) => {
      edits.commit(setSpeaker(edits.current(), this.scope, event.target.value), `speaker ${event.target.value}`);
    });
  }

  makeSlider(slider) {
    const id = `slider-${slider.name}`;
    const input = make("input", { type: "range", id, min: slider.low, max: slider.high, step: slider.step });
    const output = make("span", { class: "value", "aria-hidden": "true" }); // the slider announces it
    const element = make("div", { class: "slider" }, make("label", { for: id }, slider.label), output, input);
    $("sliders").append(element);
    const made = {
      toSlider: (value) => value,
      ofSlider: (value) => value,
      ...slider,
      element,
      input,
      output,
      gesture: null,
    };
    input.addEventListener("input", () => this.slide(made));
    input.addEventListener("change", () => {
      const { table } = made.gesture ?? {};
      made.gesture = null;
      if (table)
        this.edits.commit(
          table,
          `${slider.label.toLowerCase()} of ${this.title()}, ${input.getAttribute("aria-valuetext")}`,
        );
    });
    input.addEventListener("dblclick", () => {
      input.value = made.toSlider(slider.neutral);
      for (const name of ["input", "change"]) input.dispatchEvent(new Event(name));
    });
    return made;
  }

  slide(slider) {
    const { edits, scope } = this;
    slider.gesture ??= {
      before: edits.current(),
      from: compareVersions(edits.current(), edits.base(), scope)[slider.name],
    };
    const { before, from } = slider.gesture;
    slider.gesture.table = slider.apply(before, scope, {
      value: slider.ofSlider(Number(slider.input.value)),
      from,
      base: edits.base(),
    });
    edits.preview(slider.gesture.table);
  }

  makeField(field) {
    const { name, step, low, high } = field;
    const input = make("input", {
      type: "number",
      min: low,
      max: high,
      step,
      id: `field-${name}`,
      inputmode: "decimal",
    });
    const element = make("div", { class: "field" }, make("label", { for: input.id }, field.label), input);
    $("fields").append(element);
    input.addEventListener("change", () => this.enter({ ...field, input }));
    return { ...field, element, input };
  }

  enter({ name, label, low, least = low, high, change, input }) {
    const value = Number(input.value);
    const isValid = input.value !== "" && (value === low || (value >= least && value <= high));
    input.setAttribute("aria-invalid", String(!isValid));
    const expected = `${least === low ? "" : `${low} or `}${least} to ${high}`;
    if (!isValid) return this.edits.refuse(`${label}: ${input.value || "nothing"}, expected ${expected}`);
    const { scope, edits } = this;
    if (name === "pause") return edits.commit(setPause(edits.current(), scope.u, value), `pause ${value} s`);
    const table = change(edits.current(), scope, value, this.unit());
    return edits.commit(table, `${label.split(" (")[0].toLowerCase()} of ${this.title()}, ${value}`);
  }

  reset() {
    const { scope, edits } = this;
    const base = edits.base();
    let table = changeSymbols(edits.current(), scope, (symbol, u, i) => placesOf(base.utterances[u])[i].symbol);
    if (scope.from === undefined) {
      const restore = (one, u) =>
        (scope.u ?? u) === u ? { ...one, pause: base.utterances[u].pause, speaker: base.utterances[u].speaker } : one;
      table = { ...table, utterances: table.utterances.map(restore) };
    }
    edits.commit(table, `${this.title()} reset to the first version`);
    say(`${this.title()} reset to the first version`);
  }

  title() {
    const { u, from } = this.scope;
    if (u === undefined) return "everything";
    return from === undefined ? `sentence ${u + 1}` : describe(this.edits.base().utterances[u], this.unit());
  }

  // Returns the selected unit of an utterance.
  unit() {
    const { u, from, grain } = this.scope;
    return unitsOf(this.edits.base().utterances[u], grain).find((unit) => unit.from <= from && from < unit.until);
  }

  // Shows the path from everything to the selection, through its sentence, word and syllable.
  crumbs(utterances) {
    const { u, from, grain } = this.scope;
    const all = [["Everything", {}]];
    if (u !== undefined && utterances.length > 1) all.push([`Sentence ${u + 1}`, { u }]);
    for (const kind of from === undefined ? [] : ["word", "syllable", "phone"].slice(0, 3 - GRAINS.indexOf(grain))) {
      const unit = unitsOf(utterances[u], kind).find((one) => one.from <= from && from < one.until);
      const word = placesOf(utterances[u])[unit.head].word.text;
      const text = kind === "word" ? word : labelOf(utterances[u], unit) || "space";
      const isWhole = kind === "syllable" && grain !== kind && sameUnit(unit, utterances[u], "word");
      if (text && !isWhole && (word || kind === grain)) all.push([text, scopeOf(u, unit)]);
    }
    $("crumbs").replaceChildren(
      ...all.map(([text, scope], index) => {
        const button = make("button", { type: "button" }, text);
        if (index === all.length - 1) button.setAttribute("aria-current", "true");
        button.addEventListener("click", () => {
          this.onSelect(scope);
          [...$("crumbs").children].at(-1).focus();
        });
        return button;
      }),
    );
  }

  show(table, scope, { speakers, isLocked }) {
    const base = this.edits.base();
    if (
      JSON.stringify(scope) !== JSON.stringify(this.scope) ||
      this.table?.utterances.length !== table.utterances.length ||
      this.base !== base
    ) {
      Object.assign(this, { scope, base });
      this.crumbs(base.utterances);
    }
    this.table = table;
    const measured = compareVersions(table, base, scope);
    for (const { name, element, input, output, gesture, format, toSlider, low, high } of this.sliders) {
      const value = measured[name];
      element.hidden = value === null || (name === "range" && scope.grain === "phone");
      input.disabled = isLocked;
      if (element.hidden) continue;
      if (!gesture) input.value = clamp(toSlider(value), low, high);
      output.textContent = format(value);
      input.setAttribute("aria-valuetext", format(value));
    }
    const symbol = scope.from === undefined ? null : this.symbolOf(table);
    for (const { name, element, input, write } of this.fields)
      this.fill(element, input, symbol?.[name] == null ? null : write(symbol[name], table), isLocked);
    const isSentence = scope.u !== undefined && scope.from === undefined;
    this.fill(this.pause.element, this.pause.input, isSentence ? table.utterances[scope.u].pause : null, isLocked);
    $("own-speaker-field").hidden = scope.from !== undefined || speakers.length < 2;
    if (!$("own-speaker-field").hidden) {
      fillSelect(
        $("own-speaker"),
        speakers.map((name) => [name, name]),
        table.utterances[scope.u ?? 0].speaker,
      );
      $("own-speaker").disabled = isLocked;
    }
    $("reset").disabled = isLocked || table === base;
  }

  // Returns what a unit's fields show: its length, and the pitch, volume and energy of the symbol of its handle.
  symbolOf(table) {
    const { scope } = this;
    const utterance = table.utterances[scope.u];
    const unit = this.unit();
    const carrier = carrierOf(utterance, unit)?.symbol ?? { ...placesOf(utterance)[unit.head].symbol, pitch: 0 };
    return { ...carrier, frames: totalFrames(symbolsIn(table, scope)) };
  }

  fill(element, input, value, isLocked) {
    element.hidden = value === null;
    input.disabled = isLocked;
    if (value === null) return;
    input.value = round(value, 4);
    input.removeAttribute("aria-invalid");
  }
}
