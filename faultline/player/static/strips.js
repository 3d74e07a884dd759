"use strict";
// Each partition as a strip: the log, and on it what both engines have read, hold and will do. Flink is above the log,
// Spark below it, so that no colour is needed to tell them apart. All offsets come from the items; here they are only
// placed.
Faultline.strips = (() => {
  const { make, draw, by, say, number, many, snapped, still } = Faultline.dom;
  const SMOOTH_SECONDS = 2.5;
  const LANE = { flink: 8, bar: 38, barHeight: 22, height: 92 };
  const NAME_WIDTH = 62;
  const SMALL = { bar: 4, barHeight: 14, height: 22 };

  // Between two samples a mark moves evenly; the number beside it is always one that was sampled.
  function between(now, next, at, field, partition) {
    const value = now[field] && now[field][partition];
    if (value === undefined || !next || still.matches || next.at - now.at > SMOOTH_SECONDS) return value;
    const to = next[field] && next[field][partition];
    if (to === undefined || to < value) return value;
    return value + ((to - value) * (at - now.at)) / (next.at - now.at);
  }

  // `partitions`: how many each topic has, as far as it is known before the first sample: their rows keep their place.
  function Strips(store, fixed, partitions, redraw) {
    this.redraw = redraw;
    this.store = store;
    this.fixed = fixed;
    this.rows = {};
    this.small = {};
    this.windows = {};
    for (let partition = 0; partition < partitions; partition += 1) {
      this.visits(partition);
      this.written(partition);
    }
  }
  Strips.prototype.visits = function (partition) {
    return this.row(this.rows, by("strips"), "visits", partition, LANE);
  };
  Strips.prototype.written = function (partition) {
    return this.row(this.small, by("window-strips"), "visit_windows", partition, SMALL);
  };
  // Another log: its offsets are elsewhere.
  Strips.prototype.forget = function () {
    this.windows = {};
  };
  Strips.prototype.range = function (field, partition, end, needed, at) {
    const key = field + partition;
    this.windows[key] = this.windows[key] || new Faultline.window(this.store, field, partition, this.fixed);
    return this.windows[key].range(end, needed, at, this.following);
  };

  Strips.prototype.row = function (rows, parent, name, partition, layout) {
    if (rows[partition]) return rows[partition];
    const picture = draw("svg", { class: "strip", height: layout.height, role: "img" });
    const end = make("span", { class: "end number" });
    const label = make("span", { class: "name" });
    label.append(make("span", { class: "topic", text: name }), " ", make("b", { text: partition }));
    const shapes = draw("g");
    const texts = draw("g");
    picture.append(shapes, texts);
    const row = { picture, shapes, texts, end, marks: {}, used: new Set(), width: 600 };
    row.element = make("div", { class: "row" }, label, picture, end);
    parent.append(row.element);
    const watch = new ResizeObserver(([entry]) => {
      const width = Math.max(120, entry.contentRect.width);
      if (width === row.width) return;
      row.width = width;
      this.redraw();
    });
    watch.observe(picture);
    row.width = Math.max(120, picture.getBoundingClientRect().width || 600);
    return (rows[partition] = row);
  };

  function removeOthers(rows, partitions) {
    for (const partition of Object.keys(rows).filter((each) => !(each in partitions))) {
      rows[partition].element.remove();
      delete rows[partition];
    }
  }

  // One element for each name, made once: only attributes change from frame to frame.
  function mark(row, name, tag, attributes, text) {
    let element = row.marks[name];
    if (!element) {
      element = row.marks[name] = draw(tag);
      (tag === "text" ? row.texts : row.shapes).append(element);
    }
    row.used.add(name);
    element.removeAttribute("display");
    for (const [key, value] of Object.entries(attributes)) {
      if (element.getAttribute(key) !== String(value)) element.setAttribute(key, value);
    }
    if (text !== undefined) {
      let holder = element;
      if (tag !== "text") {
        holder = element.querySelector("title") || element.appendChild(draw("title"));
      }
      say(holder, text);
    }
    return element;
  }
  function hideUnused(row) {
    for (const [name, element] of Object.entries(row.marks)) {
      if (!row.used.has(name) && !element.hasAttribute("display")) element.setAttribute("display", "none");
    }
    row.used.clear();
  }

  Strips.prototype.show = function (at, missing, following) {
    const store = this.store;
    const log = store.at("log", at);
    this.following = following;
    say(by("log-missing"), missing);
    by("log-missing").hidden = !missing;
    by("log").classList.toggle("dim", Boolean(missing));
    // Before the first sample there is nothing to be seen.
    by("log").classList.toggle("none", !log);
    if (!log) return;
    const next = store.next("log", at);
    // What does not answer is not drawn: it may be elsewhere by now.
    const known = ({ item, silent }) => (silent ? null : item);
    const flink = known(store.answer("flink", "flink", at));
    const spark = known(store.answer("spark", "spark", at));
    const held = heldBy(known(store.answer("retained", "checkpoints", at)), store.at("flink", at));
    const again = ["flink", "spark"]
      .map((engine) => store.until("again", at).filter((item) => item.engine === engine).pop())
      .filter(Boolean);
    for (const partition of Object.keys(log.visits)) {
      this.partition(this.visits(partition), partition, { at, log, next, flink, spark, held, again });
    }
    for (const partition of Object.keys(log.windows)) this.output(this.written(partition), partition, log, next, at);
    removeOthers(this.rows, log.visits);
    removeOthers(this.small, log.windows);
  };

  Strips.prototype.partition = function (row, partition, now) {
    const { at, log, next, flink, spark, again } = now;
    const held = now.held.filter((each) => partition in each.offsets);
    const newest = held.find((each) => each.newest);
    const end = between(log, next, at, "visits", partition);
    const [low, high] = this.range("visits", partition, end, newest ? newest.offsets[partition] : end, at);
    const x = (offset) => snapped(Math.max(-20, Math.min(row.width + 20, ((offset - low) / (high - low)) * row.width)));
    const { bar, barHeight } = LANE;
    const foot = bar + barHeight;
    say(row.end, number(log.visits[partition]));

    mark(row, "log", "rect", { class: "log", x: 0, y: bar, width: Math.max(0, x(end)), height: barHeight, rx: 3 });
    for (const item of again) {
      if (!(item.end[partition] > item.begin[partition])) continue;
      const left = x(item.begin[partition]);
      const width = Math.max(0, x(item.end[partition]) - left);
      const count = item.end[partition] - item.begin[partition];
      const name = `again-${item.engine}`;
      const words = `${item.engine === "flink" ? "Flink" : "Spark"}: ${item.at_least ? "at least " : ""}${many(count, "visit")} again, from ${item.name}`;
      const half = barHeight / 2;
      const top = again.length > 1 && item.engine === "spark" ? bar + half : bar;
      mark(row, name, "rect", { class: `again ${item.engine}`, x: left, y: top, width, height: again.length > 1 ? half : barHeight }, words);
      // What is a lower bound is nowhere a bare number.
      const label = `${item.at_least ? "at least " : ""}${number(count)}`;
      const room = 16 + label.length * 8;
      if (width > room + 6 && again.length === 1) {
        mark(row, `${name}-ground`, "rect", { class: "again-ground", x: left + (width - room) / 2, y: bar + 3, width: room, height: barHeight - 6, rx: 3 });
        mark(row, `${name}-count`, "text", { class: "again-count", x: left + width / 2, y: bar + 16, "text-anchor": "middle" }, label);
      }
    }
    mark(row, "end", "rect", { class: "log-end", x: x(end) - 2, y: bar - 4, width: 2.5, height: barHeight + 8 });

    this.held(row, partition, x, held, newest, flink);
    this.above(row, partition, x, flink, newest, at, log);
    this.below(row, partition, x, spark, foot);
    describe(row.picture, words(partition, log, flink, spark, newest));
    hideUnused(row);
  };

  // What each retained checkpoint holds: the newest of the job is filled, the restored one has a ring.
  Strips.prototype.held = function (row, partition, x, held, newest, flink) {
    const y = LANE.bar - 9.5;
    const left = newest && x(newest.offsets[partition]) > 70;
    const last = newest ? x(newest.offsets[partition]) : 0;
    held.forEach((each, place) => {
      const where = x(each.offsets[partition]);
      if (where < 0) return;
      const restored = Boolean(flink) && each.key === flink.restored;
      // Where the name of the newest stands.
      if (left && where > last - NAME_WIDTH && where < last - 1 && !restored) return;
      mark(row, `chk${place}`, "path", { class: `chk${each.newest ? " newest" : ""}${restored ? " restored" : ""}`, d: `M${where} ${y - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z` }, `${each.name} holds offset ${number(each.offsets[partition])}${restored ? ", and the job was restored from it" : ""}`);
      if (!restored) return;
      mark(row, "ring", "circle", { class: "ring", cx: where, cy: y, r: 8 });
      if (each.newest || Math.abs(last - where) < NAME_WIDTH + 20) return;
      mark(row, "restored-name", "text", { class: "restored-text", x: where + 12, y: LANE.bar - 6, "text-anchor": "start" }, `from ${each.name}`);
    });
  };

  // Where Flink reads, and what it has read since its newest checkpoint.
  Strips.prototype.above = function (row, partition, x, flink, newest, at, log) {
    const { bar, flink: top } = LANE;
    let position = flink && flink.position && flink.position[partition];
    if (position !== undefined && position !== null) position = between(flink, this.store.next("flink", at), at, "position", partition);
    const reads = Boolean(flink) && position !== undefined && flink.running > 0;
    if (newest) {
      const where = x(newest.offsets[partition]);
      const left = where > 70;
      if (reads) mark(row, "since", "rect", { class: "since", x: where, y: bar - 2, width: Math.max(0, x(position) - where), height: 2 });
      mark(row, "chk-name", "text", { class: "flink-text", x: left ? where - 12 : where + 12, y: bar - 6, "text-anchor": left ? "end" : "start" }, newest.name);
    } else if (log.group && partition in log.group) {
      const where = x(log.group[partition]);
      mark(row, "group", "path", { class: "chk newest", d: `M${where} ${bar - 14}l4.5 4.5l-4.5 4.5l-4.5 -4.5z` }, `Flink has committed offset ${number(log.group[partition])}`);
      if (!reads) mark(row, "group-name", "text", { class: "flink-text", x: where > 120 ? where - 8 : where + 8, y: bar - 6, "text-anchor": where > 120 ? "end" : "start" }, `Flink committed ${number(log.group[partition])}`);
    }
    if (reads) {
      const where = x(position);
      const left = where > row.width - 96;
      mark(row, "reads", "path", { class: "reads", d: `M${where - 6} ${top + 3}h12l-6 9z` }, `Flink reads offset ${number(flink.position[partition])}`);
      mark(row, "reads-line", "rect", { class: "reads-line", x: where - 0.75, y: top + 10, width: 1.5, height: bar - top - 10 + LANE.barHeight });
      mark(row, "reads-name", "text", { class: "flink-text strong", x: left ? where - 10 : where + 10, y: top + 8, "text-anchor": left ? "end" : "start" }, `Flink ${number(flink.position[partition])}`);
    }
  };

  // Spark: the end of the newest committed batch, and the batch that is planned.
  Strips.prototype.below = function (row, partition, x, spark, foot) {
    if (!spark || spark.offsets[partition] === undefined) return;
    const where = x(spark.offsets[partition]);
    const y = foot + 4;
    if (spark.planned && spark.planned.end[partition] !== undefined) {
      const from = x(spark.planned.begin[partition]);
      const to = x(spark.planned.end[partition]);
      const left = to > row.width - 130;
      mark(row, "planned", "rect", { class: "planned", x: from, y: y + 1, width: Math.max(2, to - from), height: 10, rx: 2 }, `batch ${spark.planned.batch} is planned to offset ${number(spark.planned.end[partition])}`);
      if (!left) mark(row, "planned-name", "text", { class: "spark-text", x: to + 6, y: y + 10, "text-anchor": "start" }, `batch ${spark.planned.batch} planned`);
    }
    const left = where > 110;
    mark(row, "spark", "path", { class: "committed", d: `M${where - 6} ${y + 11}h12l-6 -9z` }, `Spark has committed offset ${number(spark.offsets[partition])}`);
    mark(row, "spark-line", "rect", { class: "committed-line", x: where - 0.75, y: foot - LANE.barHeight, width: 1.5, height: LANE.barHeight + 6 });
    mark(row, "spark-name", "text", { class: "spark-text strong", x: left ? where - 10 : Math.max(2, where + 10), y: y + 11, "text-anchor": left ? "end" : "start" }, `Spark ${number(spark.offsets[partition])}`);
  };

  // visit_windows: what readers get, and what is prepared and not committed.
  Strips.prototype.output = function (row, partition, log, next, at) {
    const end = between(log, next, at, "windows", partition);
    const stable = between(log, next, at, "stable", partition);
    const [low, high] = this.range("windows", partition, end, stable, at);
    const x = (offset) => snapped(Math.max(0, Math.min(row.width, ((offset - low) / (high - low)) * row.width)));
    const { bar, barHeight } = SMALL;
    const waiting = log.windows[partition] - log.stable[partition];
    mark(row, "stable", "rect", { class: "stable", x: 0, y: bar, width: x(stable), height: barHeight, rx: 3 }, `readers get it up to offset ${number(log.stable[partition])}`);
    if (waiting > 0) {
      mark(row, "prepared", "rect", { class: "prepared", x: x(stable), y: bar + 0.75, width: Math.max(3, x(end) - x(stable)), height: barHeight - 1.5, rx: 2 }, `${number(waiting)} written, not committed`);
      const label = `${number(waiting)} not committed`;
      const room = 14 + label.length * 7;
      const left = x(stable) > room;
      // Where neither side has room, the sentence above has the number.
      if (left || row.width - x(end) > room) {
        mark(row, "prepared-name", "text", { class: "quiet-text", x: left ? x(stable) - 7 : x(end) + 7, y: bar + 11, "text-anchor": left ? "end" : "start" }, label);
      }
    }
    say(row.end, number(log.stable[partition]));
    describe(row.picture, `visit_windows partition ${partition}: readers get it up to offset ${number(log.stable[partition])}, ${many(waiting, "record")} written and not committed`);
    hideUnused(row);
  };

  // The retained checkpoints that were read, each with its job and name; the newest is that of the job that runs, or,
  // before its first one, the one that it was restored from.
  function heldBy(retained, flink) {
    const found = ((retained && retained.checkpoints) || [])
      .filter((each) => each.offsets)
      .map((each) => ({ ...each, key: `${each.job_id}/${each.name}`, newest: false }));
    const own = flink ? found.filter((each) => each.job_id === flink.job).pop() || found.find((each) => each.key === flink.restored) : found[found.length - 1];
    if (own) own.newest = true;
    return found;
  }
  // A label that is written again is spoken again.
  function describe(picture, text) {
    if (picture.getAttribute("aria-label") !== text) picture.setAttribute("aria-label", text);
  }
  function words(partition, log, flink, spark, newest) {
    const parts = [`visits partition ${partition} ends at ${number(log.visits[partition])}`];
    if (flink && flink.position && partition in flink.position) parts.push(`Flink reads ${number(flink.position[partition])}`);
    if (newest) parts.push(`${newest.name} holds ${number(newest.offsets[partition])}`);
    if (spark && partition in spark.offsets) parts.push(`Spark has committed ${number(spark.offsets[partition])}`);
    return parts.join(", ");
  }
  return Strips;
})();
