// The takes: every version that was played, kept for later.

import { $, make } from "./dom.js";
import { SLIDERS } from "./inspector.js";
import { say } from "./messages.js";
import { compareVersions, keyOf, memoize, scopeOf, secondsOf, sum, symbolsIn, timelineOf } from "./table.js";
import { phonesOf } from "./units.js";

const MOST_TAKES = 40;

// `actions`, {play(take), restore(take), keep()}, are set before the first take.
export class Takes {
  constructor() {
    Object.assign(this, { actions: null, all: [], count: 0 });
  }

  // A version that is already a take isn't added again.
  add(version) {
    const known = this.all.find((take) => take.key === takeKey(version));
    if (known) return;
    this.count += 1;
    const { table, base } = version;
    const seconds = secondsOf(table, timelineOf(table).frames);
    const title = `Take ${this.count}`;
    this.all.unshift({
      key: takeKey(version),
      version,
      title,
      detail: `${seconds.toFixed(2)} s · ${summarize(table, base)}`,
    });
    this.all.length = Math.min(this.all.length, MOST_TAKES);
    this.render();
  }

  render(shown = this.shown, playing = this.playing) {
    Object.assign(this, { shown, playing });
    $("takes-section").hidden = this.all.length === 0;
    const focused = document.activeElement?.closest("#takes button")?.dataset.name;
    $("takes").replaceChildren(...this.all.map((take) => this.makeItem(take)));
    if (focused) $("takes").querySelector(`[data-name="${focused}"]`)?.focus();
  }

  makeItem(take) {
    const isPlaying = this.playing === take;
    const isShown = this.shown !== undefined && takeKey(this.shown) === take.key;
    const button = (name, text, act) => {
      const made = make(
        "button",
        { type: "button", "data-name": `${name} ${take.title}`, "aria-label": `${text} ${take.title}` },
        text,
      );
      made.addEventListener("click", act);
      return made;
    };
    const heading = make("span", { class: "take-title" }, take.title);
    if (isShown) heading.append(make("span", { class: "tag" }, "shown"));
    const words = make("span", { class: "take-text", title: take.version.text }, take.version.text);
    const play = button("play", isPlaying ? "Stop" : "Play", () => this.actions.play(take));
    const restore = button("restore", "Restore", () => this.actions.restore(take));
    const remove = button("remove", "Remove", () => this.remove(take));
    return make(
      "li",
      {},
      heading,
      words,
      make("span", { class: "quiet" }, take.detail),
      make("span", { class: "row" }, play, restore, remove),
    );
  }

  remove(take) {
    const index = this.all.indexOf(take);
    this.all.splice(index, 1);
    this.actions.keep();
    this.render();
    const neighbor = this.all[Math.min(index, this.all.length - 1)];
    if (neighbor) $("takes").querySelector(`[data-name="remove ${neighbor.title}"]`).focus();
    say(`${take.title} removed`);
  }
}

export const takeKey = memoize(({ table }) => table.utterances.map((one) => keyOf(one) + one.pause).join());

// Summarizes how a version differs from its first one.
function summarize(table, base) {
  if (takeKey({ table }) === takeKey({ table: base })) return "first version";
  const measured = compareVersions(table, base, {});
  const changes = SLIDERS.flatMap(({ name, label, neutral, step, format }) => {
    const value = measured[name];
    return value === null || Math.abs(value - neutral) < step ? [] : [`${label.toLowerCase()} ${format(value)}`];
  });
  const phones = sum(
    table.utterances.map(
      (one, u) =>
        phonesOf(one).filter((unit) => {
          const [now, first] = [table, base].map((version) => symbolsIn(version, scopeOf(u, unit)));
          return JSON.stringify(now) !== JSON.stringify(first);
        }).length,
    ),
  );
  return [`${phones} sound${phones === 1 ? "" : "s"} changed`, ...changes].join(" · ");
}
