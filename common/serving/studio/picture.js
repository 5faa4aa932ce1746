// The picture: mel-spectrogram, words, phones, pitch curve and handles of each utterance on one time axis.
//
// Positions are in frames. The style sheet multiplies them by --frame, pixels per frame, so zooming changes one number.

import { $, make, place } from "./dom.js";
import { drawMel, melColors } from "./mel.js";
import { clamp, PITCH_LIMITS, round, secondsOf, symbolsIn, timelineOf } from "./table.js";
import { wordsOf } from "./units.js";
import { heightOf, roomForWords, UtteranceView } from "./utterance.js";

const FRAME_LIMITS = [0.5, 24]; // px per frame
const AXIS_MARKS = [40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 600, 800, 1000]; // Hz
const PADDING = 12 + 44; // px, with room for the label of the last tick
const RULER_STEPS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30]; // s

export class Picture {
  constructor({ onSeek }) {
    this.scroller = $("picture");
    this.strip = $("strip");
    this.views = [];
    this.shown = []; // for each utterance, the drawn clip and image
    this.frame = 4; // px
    this.grain = "phone"; // the kind of unit that handles move
    this.home = null; // scroll position before the view followed the sound
    this.scroller.addEventListener("scroll", () => this.refresh(), { passive: true });
    new ResizeObserver(() => this.refresh()).observe(this.scroller);
    this.strip.addEventListener("click", (event) => {
      if (!event.target.closest(".handle, [role=option]")) onSeek(this.frameAt(event.clientX));
    });
    this.recolor();
  }

  frameAt(x) {
    return (x - this.strip.getBoundingClientRect().left) / this.frame;
  }

  // version: {table, base, shaped}; clips: each utterance's clip, or null; loudest: of the first version's mels.
  show(version, clips, loudest) {
    const isGrown = this.version?.base.utterances.every((one, u) => one === version.base.utterances[u]);
    if (!isGrown) {
      this.strip.querySelectorAll(".utterance").forEach((element) => element.remove());
      [this.views, this.shown] = [[], []];
      this.axis = null;
      this.scroller.scrollLeft = 0;
    }
    const isNew = !this.axis || this.version.base.utterances.length < version.base.utterances.length;
    [this.version, this.clips, this.loudest] = [version, clips, loudest];
    if (!this.isDragging) this.fitAxis();
    if (isNew) this.fit();
    this.refresh(true);
  }

  fitAxis() {
    const { table, base } = this.version;
    const pitches = [table, base]
      .flatMap((one) => symbolsIn(one, {}))
      .flatMap(({ pitch, frames }) => (pitch > 0 && frames > 0 ? [pitch] : []));
    $("axis").hidden = pitches.length === 0;
    if (pitches.length === 0) pitches.push(100, 200);
    const needed = [pitches.reduce((a, b) => Math.min(a, b)) / 1.19, pitches.reduce((a, b) => Math.max(a, b)) * 1.19];
    const middle = Math.sqrt(needed[0] * needed[1]);
    this.axis = [
      Math.max(PITCH_LIMITS[0], Math.min(needed[0], middle / 1.5)),
      Math.min(PITCH_LIMITS[1], Math.max(needed[1], middle * 1.5)),
    ];
    const marks = AXIS_MARKS.filter((hertz) => hertz > this.axis[0] * 1.05 && hertz < this.axis[1] / 1.05);
    $("axis").replaceChildren(
      ...marks.map((hertz) => {
        const mark = make("span", {}, String(hertz));
        place(mark, { top: `${heightOf(hertz, this.axis)}%` });
        return mark;
      }),
    );
  }

  // Fits the available width if that leaves the phones wide enough to grab.
  fit() {
    const frames = timelineOf(this.version.table).frames;
    const needed = Math.max(2.8, ...this.version.base.utterances.map(roomForWords));
    this.setFrame(clamp((this.scroller.clientWidth - PADDING) / Math.max(1, frames), Math.min(needed, 10), 10));
  }

  zoom(factor) {
    const middle = this.frameAt(this.scroller.getBoundingClientRect().left + this.scroller.clientWidth / 2);
    this.setFrame(this.frame * factor);
    this.scroller.scrollLeft = middle * this.frame - this.scroller.clientWidth / 2;
    this.refresh();
  }

  setFrame(pixels) {
    this.frame = clamp(pixels, ...FRAME_LIMITS);
    place(this.scroller, { frame: `${this.frame}px` });
    for (const view of this.views) view?.hideTight(this.frame);
  }

  // Draws the visible part and a screen on both sides; with `all`, redraws what is already there.
  refresh(all = false) {
    if (!this.version) return;
    const { table, base } = this.version;
    const { starts, frames } = timelineOf(table);
    place(this.strip, { for: frames });
    const width = this.scroller.clientWidth / this.frame;
    const from = this.scroller.scrollLeft / this.frame - width;
    for (const u of table.utterances.keys()) {
      const end = starts[u + 1] ?? frames;
      const isNear = end >= from && starts[u] <= from + 3 * width;
      if (this.views[u] ? all : isNear) this.draw(u);
    }
    this.drawRuler(from, from + 3 * width);
    this.scroller.dispatchEvent(new CustomEvent("drawn"));
  }

  draw(u) {
    const { table, base, shaped } = this.version;
    const utterance = table.utterances[u];
    if (!this.views[u]) {
      this.views[u] = new UtteranceView(u, base.utterances[u], this.grain);
      const following = this.views.slice(u + 1).find(Boolean);
      this.strip.insertBefore(this.views[u].element, following ? following.element : null);
    }
    const { starts } = timelineOf(table);
    const isLast = u === table.utterances.length - 1;
    const seen = [utterance, starts[u], isLast, this.clips[u], this.colors, ...this.axis];
    if (seen.every((value, index) => value === this.views[u].seen?.[index])) return this.views[u];
    this.views[u].seen = seen;
    this.views[u].update({ table, base, u, start: starts[u], axis: this.axis, shaped, isLast });
    this.views[u].hideTight(this.frame);
    const clip = this.clips[u];
    if (clip && (this.shown[u]?.clip !== clip || this.shown[u].loudest !== this.loudest)) {
      const image = drawMel(clip, this.colors, this.loudest);
      this.shown[u] = { clip, spoken: utterance, image, loudest: this.loudest };
    }
    this.views[u].element.classList.toggle("changed", !clip);
    if (this.shown[u]) this.views[u].paint(this.shown[u], utterance);
    return this.views[u];
  }

  viewOf(u) {
    return this.views[u] ?? this.draw(u);
  }

  recolor() {
    this.colors = melColors();
    for (const shown of this.shown) if (shown) shown.image = drawMel(shown.clip, this.colors, this.loudest);
    this.refresh(true);
  }

  drawRuler(from, until) {
    const { table } = this.version;
    const perSecond = (table.sampling_rate / table.hop_length) * this.frame; // px
    const step = RULER_STEPS.find((seconds) => seconds * perSecond >= 56) ?? 60;
    const first = Math.max(0, Math.floor(secondsOf(table, from) / step));
    const last = Math.floor(secondsOf(table, Math.min(until, timelineOf(table).frames)) / step);
    const marks = [];
    for (let index = first; index <= last; index++) {
      const mark = make("span", {}, `${round(index * step, 2)} s`);
      place(mark, { at: (index * step * table.sampling_rate) / table.hop_length });
      marks.push(mark);
    }
    $("ruler").replaceChildren(...marks);
  }

  // Puts the cursor at a frame, and with `follow` keeps it in view.
  point(frame, follow) {
    place($("cursor"), { at: frame });
    const [x, left, width] = [frame * this.frame, this.scroller.scrollLeft, this.scroller.clientWidth];
    if (!follow || (x >= left && x <= left + width - 24)) return;
    this.home ??= left;
    this.scroller.scrollLeft = x - 24;
    this.followed = this.scroller.scrollLeft;
  }

  // After playing, scrolls back to where the view was, unless it was moved by hand meanwhile.
  goBack() {
    if (this.home !== null && Math.abs(this.scroller.scrollLeft - this.followed) < 2) {
      this.scroller.scrollLeft = this.home;
    }
    this.home = null;
  }

  setGrain(grain) {
    this.grain = grain;
    if (!this.version) return;
    for (const { element } of this.views.filter(Boolean)) element.remove();
    this.views = [];
    $("bubble").hidden = true;
    this.refresh(true);
  }

  select(scope) {
    for (const option of this.strip.querySelectorAll("[aria-selected=true]"))
      option.setAttribute("aria-selected", "false");
    if (scope.from === undefined) return;
    const view = this.viewOf(scope.u);
    for (const { from, until, w } of wordsOf(this.version.base.utterances[scope.u])) {
      if (scope.from <= from && until <= scope.until) view.wordOptions[w]?.setAttribute("aria-selected", "true");
    }
    view.units.forEach(({ from, until }, i) => {
      if (from < scope.until && scope.from < until) view.parts[i].phone.setAttribute("aria-selected", "true");
    });
  }
}
