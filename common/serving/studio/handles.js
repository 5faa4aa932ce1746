// Pointer and key input in the picture: handles of pitch, borders and pauses, and words and phones to select.

import { $, place } from "./dom.js";
import { clamp, moveBorder, placesOf, scopeOf, secondsOf, setPause, timelineOf } from "./table.js";
import { carrierOf, setUnitPitch, wordsOf } from "./units.js";

const KIND = { pitch: "pitch", border: "border", pause: "pause", word: "word", phone: "phone" };

// edits: {isLocked(), current() table, preview(table), commit(table, said), revert()}; onSelect(scope): gets the focus;
// onPlay(from, until): frames.
export class Handles {
  constructor(picture, edits, { onSelect, onPlay }) {
    Object.assign(this, { picture, edits, onSelect, onPlay });
    const { strip, scroller } = picture;
    strip.addEventListener("pointerdown", (event) => this.grab(event));
    strip.addEventListener("keydown", (event) => this.press(event));
    strip.addEventListener("focusin", (event) => this.focus(event.target.closest("[data-kind]")));
    strip.addEventListener("focusout", () => this.bubble(null));
    strip.addEventListener("click", (event) => event.target.closest("[role=option]")?.focus());
    strip.addEventListener("dblclick", (event) => this.playOption(event.target.closest("[role=option]")));
    scroller.addEventListener("drawn", () => this.keepTabStops());
  }

  // If handles overlap, the nearest one is meant.
  nearest(target, { clientX, clientY }) {
    const others = [
      ...target.parentElement.querySelectorAll(`.handle[data-kind=${target.dataset.kind}]:not([hidden])`),
    ];
    const distance = (element) => {
      const box = element.getBoundingClientRect();
      return Math.hypot(box.left + box.width / 2 - clientX, box.top + box.height / 2 - clientY);
    };
    return others.reduce((best, one) => (distance(one) < distance(best) ? one : best), target);
  }

  grab(event) {
    const touched = event.target.closest(".handle");
    if (!touched || event.button !== 0 || this.edits.isLocked()) return;
    event.preventDefault();
    const handle = this.nearest(touched, event);
    handle.focus({ preventScroll: true });
    handle.setPointerCapture(event.pointerId);
    const before = this.edits.current();
    let table = before;
    const drag = (moved) => {
      this.picture.isDragging = true;
      table = this.dragged(handle, before, moved.clientX - event.clientX, moved.clientY - event.clientY);
      this.edits.preview(table);
      this.bubble(handle);
    };
    const cancel = (key) => {
      if (key.type === "keydown" && key.key !== "Escape") return;
      table = before;
      end();
    };
    const end = () => {
      for (const [name, listener] of Object.entries(listeners)) handle.removeEventListener(name, listener);
      this.picture.isDragging = false;
      handle.classList.remove("dragging");
      if (table === before) this.edits.revert();
      else this.edits.commit(table, this.said(handle));
      this.bubble(handle);
    };
    const listeners = { pointermove: drag, pointerup: end, pointercancel: cancel, keydown: cancel };
    for (const [name, listener] of Object.entries(listeners)) handle.addEventListener(name, listener);
    handle.classList.add("dragging");
  }

  dragged(handle, table, x, y) {
    const frames = Math.round(x / this.picture.frame);
    if (handle.dataset.kind !== KIND.pitch) return this.moved(handle, table, frames);
    const [low, high] = this.picture.axis;
    return this.moved(handle, table, 0, (high / low) ** (-y / handle.parentElement.clientHeight));
  }

  // Returns the table with a handle's value moved by frames, or its pitch multiplied.
  moved({ dataset }, table, frames, factor = 1) {
    const [u, i] = [Number(dataset.u), Number(dataset.i)];
    const { units } = this.picture.viewOf(u);
    if (dataset.kind === KIND.border) return moveBorder(table, u, units, i, frames);
    if (dataset.kind === KIND.pause) return setPause(table, u, table.utterances[u].pause + secondsOf(table, frames));
    const carrier = carrierOf(table.utterances[u], units[i]);
    return carrier ? setUnitPitch(table, u, units[i], carrier.symbol.pitch * factor) : table;
  }

  said(handle) {
    return `${handle.getAttribute("aria-label")}, ${handle.getAttribute("aria-valuetext")}`;
  }

  press(event) {
    const element = event.target.closest("[data-kind]");
    if (!element || event.ctrlKey || event.metaKey || event.altKey) return;
    const { kind } = element.dataset;
    const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const [turns, moves] = kind === KIND.pitch ? [up, along] : [along, up];
    const isOption = kind === KIND.word || kind === KIND.phone;
    if (isOption && event.key === "Enter") this.playOption(element);
    else if (isOption && along) this.go(element, along);
    else if (event.key === "Home") this.go(element, -Infinity);
    else if (event.key === "End") this.go(element, Infinity);
    else if (!isOption && turns) this.turn(element, turns * (event.shiftKey ? 5 : 1));
    else if (!isOption && moves) this.go(element, kind === KIND.pitch ? moves : -moves);
    else return;
    event.preventDefault();
  }

  // Moves a handle by steps of a semitone or a frame.
  turn(handle, steps) {
    if (this.edits.isLocked()) return;
    const table = this.moved(handle, this.edits.current(), steps, 2 ** (steps / 12));
    this.edits.preview(table);
    this.edits.commit(table, this.said(handle));
    this.bubble(handle);
  }

  // Moves the focus to another element of the same kind.
  go(element, steps) {
    const { table } = this.picture.version;
    const all = table.utterances.flatMap((utterance, u) => this.ofKind(element.dataset.kind, utterance, u));
    const index = all.findIndex(([u, i]) => u === Number(element.dataset.u) && i === this.indexOf(element));
    const [u, i] = all[clamp(index + steps, 0, all.length - 1)];
    const next = this.elementAt(element.dataset.kind, u, i);
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  indexOf({ dataset }) {
    return dataset.kind === KIND.pause ? 0 : Number(dataset.kind === KIND.word ? dataset.w : dataset.i);
  }

  ofKind(kind, utterance, u) {
    if (kind === KIND.pause) return this.picture.viewOf(u).pause.hidden ? [] : [[u, 0]];
    if (kind === KIND.word) return utterance.words.flatMap((word, w) => (word.text ? [[u, w]] : []));
    const isThere = (one) => !one[kind === KIND.pitch ? "pitch" : "phone"].hidden;
    return this.picture.viewOf(u).parts.flatMap((one, i) => (isThere(one) ? [[u, i]] : []));
  }

  elementAt(kind, u, i) {
    const view = this.picture.viewOf(u);
    if (kind === KIND.pause) return view.pause;
    return kind === KIND.word ? view.wordOptions[i] : view.parts[i][kind];
  }

  focus(element) {
    if (!element) return;
    for (const other of this.picture.strip.querySelectorAll(`[data-kind=${element.dataset.kind}][tabindex="0"]`))
      other.tabIndex = -1;
    element.tabIndex = 0;
    const [u, i] = [Number(element.dataset.u), this.indexOf(element)];
    const { kind } = element.dataset;
    if (kind === KIND.pause) this.onSelect({ u });
    else this.onSelect(scopeOf(u, this.unitOf(element)));
    if (element.matches(".handle:focus-visible")) this.bubble(element);
  }

  // Returns the unit that a word, phone, pitch or border stands for.
  unitOf({ dataset }) {
    const u = Number(dataset.u);
    if (dataset.kind !== KIND.word) return this.picture.viewOf(u).units[Number(dataset.i)];
    return wordsOf(this.picture.version.table.utterances[u]).find(({ w }) => w === Number(dataset.w));
  }

  // Keeps one tab stop for each kind; arrow keys move to the others.
  keepTabStops() {
    for (const kind of Object.values(KIND)) {
      const stop = this.picture.strip.querySelector(`[data-kind=${kind}][tabindex="0"]:not([hidden])`);
      if (!stop) this.picture.strip.querySelector(`[data-kind=${kind}]:not([hidden])`)?.setAttribute("tabindex", "0");
    }
  }

  playOption(option) {
    if (!option) return;
    const { table } = this.picture.version;
    const u = Number(option.dataset.u);
    const { from, until } = this.unitOf(option);
    const places = placesOf(table.utterances[u]);
    const start = timelineOf(table).starts[u];
    this.onPlay(start + places[from].start, start + places[until - 1].end);
  }

  // Shows a handle's value beside it.
  bubble(handle) {
    const bubble = $("bubble");
    bubble.hidden = !handle;
    if (!handle) return;
    bubble.textContent = handle.getAttribute("aria-valuetext");
    const [box, strip] = [handle.getBoundingClientRect(), this.picture.strip.getBoundingClientRect()];
    place(bubble, { x: `${box.left + box.width / 2 - strip.left}px`, y: `${box.top - strip.top}px` });
  }
}
