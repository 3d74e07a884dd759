"use strict";
// Which offsets a strip shows. A recorded run: all of it. A running stack: a window that stands still, and goes on when
// the end of the log comes to its edge.
Faultline.window = (() => {
  const { still } = Faultline.dom;
  const BACK_SECONDS = 45;
  const EDGE = 0.95;
  const END_AT = 0.62;
  const LEAST = 40;
  const SCROLL_MS = 700;

  function Window(store, field, partition, fixed) {
    Object.assign(this, { store, field, partition, fixed, to: null });
  }
  // `needed`: the first offset that has to be in sight. `following`: time goes on by itself, so the window may glide.
  Window.prototype.range = function (end, needed, at, following) {
    if (this.fixed) return (this.to = this.to || this.whole());
    if (this.to && this.holds(this.to, end, needed)) return this.shown();
    const from = this.store.at("log", at - BACK_SECONDS) || this.store.of("log")[0];
    const first = Math.min(from[this.field][this.partition] ?? end, needed, end);
    const width = Math.max((end - first) / END_AT, LEAST);
    this.from = this.to && following && !still.matches ? this.shown() : null;
    this.since = performance.now();
    this.to = [first - width * 0.02, first + width * 0.98];
    return this.shown();
  };
  Window.prototype.holds = ([low, high], end, needed) => end <= low + (high - low) * EDGE && Math.min(end, needed) >= low;
  Window.prototype.shown = function () {
    const part = this.from ? Math.min(1, (performance.now() - this.since) / SCROLL_MS) : 1;
    if (part >= 1) return this.to;
    const eased = part * part * (3 - 2 * part);
    return this.to.map((offset, side) => this.from[side] + (offset - this.from[side]) * eased);
  };
  Window.prototype.whole = function () {
    const { store, field, partition } = this;
    const ends = store.of("log").map((item) => item[field][partition]).filter((offset) => offset !== undefined);
    const marks = field !== "visits" ? [] : [
      ...store.of("spark").slice(0, 2).map((item) => item.offsets[partition]),
      ...store.of("flink").slice(0, 2).map((item) => (item.position || {})[partition]),
      ...store.of("again").map((item) => item.begin[partition]),
    ];
    const first = Math.min(...ends, ...marks.filter((offset) => offset !== undefined));
    const width = Math.max(Math.max(...ends) - first, LEAST);
    return [first - width * 0.02, first + width * 1.03];
  };
  return Window;
})();
