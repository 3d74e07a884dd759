"use strict";
// Each partition as a strip: the log, and on it what both engines have read, hold and will do. Flink is above the log,
// Spark below it, so that no colour is needed to tell them apart. All offsets come from the items; here they are only
// placed.
Faultline.strips = (() => {
  const { make, draw, by, say, number, many, still } = Faultline.dom;
  const LIVE_SECONDS = 75;
  const SMOOTH_SECONDS = 2.5;
  const LANE = { flink: 8, bar: 34, barHeight: 22, spark: 62, height: 88 };
  const NAME_WIDTH = 58;
  const SMALL = { bar: 4, barHeight: 14, height: 22 };

  // Between two samples a mark moves evenly; the number beside it is always one that was sampled.
  function between(now, next, at, field, partition) {
    const value = now[field] && now[field][partition];
    if (value === undefined || !next || still.matches || next.at - now.at > SMOOTH_SECONDS) return value;
    const to = next[field] && next[field][partition];
    if (to === undefined || to < value) return value;
    return value + ((to - value) * (at - now.at)) / (next.at - now.at);
  }

  function Strips(store, fixed, redraw) {
    this.redraw = redraw;
    this.store = store;
    this.fixed = fixed;
    this.rows = {};
    this.small = {};
    this.widths = {};
  }

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
      if (!row.used.has(name)) element.setAttribute("display", "none");
    }
    row.used.clear();
  }

  // From which offset to which one a strip shows. A recorded run: all of it. A running stack: the last 75 seconds.
  Strips.prototype.range = function (field, partition, end, at) {
    const key = field + partition;
    if (this.fixed) return (this.widths[key] = this.widths[key] || this.whole(field, partition));
    const from = this.store.at("log", at - LIVE_SECONDS) || this.store.of("log")[0];
    let first = partition in from[field] ? from[field][partition] : end;
    // However long a restore takes: where it begins to read again stays in sight.
    const held = (this.store.at("retained", at) || { checkpoints: [] }).checkpoints.filter((each) => each.offsets).pop();
    if (field === "visits" && held && partition in held.offsets) first = Math.min(first, held.offsets[partition]);
    const width = Math.max((end - first) * 1.05, 40);
    // A new width comes slowly: nothing jumps.
    const known = this.widths[key] || width;
    const now = still.matches ? width : known + (width - known) * 0.03;
    this.widths[key] = now;
    return [end - now, end + now * 0.03];
  };
  Strips.prototype.whole = function (field, partition) {
    const ends = this.store.of("log").map((item) => item[field][partition]).filter((offset) => offset !== undefined);
    const marks = field !== "visits" ? [] : [
      ...this.store.of("spark").slice(0, 2).map((item) => item.offsets[partition]),
      ...this.store.of("flink").slice(0, 2).map((item) => (item.position || {})[partition]),
      ...this.store.of("again").map((item) => item.begin[partition]),
    ];
    const first = Math.min(...ends, ...marks.filter((offset) => offset !== undefined));
    const last = Math.max(...ends);
    const width = Math.max(last - first, 40);
    return [first - width * 0.02, last + width * 0.03];
  };

  Strips.prototype.show = function (at, missing) {
    const store = this.store;
    const log = store.at("log", at);
    say(by("log-missing"), missing);
    by("log-missing").hidden = !missing;
    by("log").classList.toggle("dim", Boolean(missing));
    if (!log) return;
    const next = store.next("log", at);
    const flink = store.answer("flink", "flink", at).item;
    const spark = store.at("spark", at);
    const retained = store.at("retained", at);
    const again = ["flink", "spark"]
      .map((engine) => store.until("again", at).filter((item) => item.engine === engine).pop())
      .filter(Boolean);
    for (const partition of Object.keys(log.visits)) {
      const row = this.row(this.rows, by("strips"), "visits", partition, LANE);
      this.partition(row, partition, { at, log, next, flink, spark, retained, again });
    }
    for (const partition of Object.keys(log.windows)) {
      this.output(this.row(this.small, by("window-strips"), "visit_windows", partition, SMALL), partition, log, next, at);
    }
  };

  Strips.prototype.partition = function (row, partition, now) {
    const { at, log, next, flink, spark, retained, again } = now;
    const end = between(log, next, at, "visits", partition);
    const [low, high] = this.range("visits", partition, end, at);
    const x = (offset) => Math.max(-20, Math.min(row.width + 20, ((offset - low) / (high - low)) * row.width));
    const { bar, barHeight } = LANE;
    const foot = bar + barHeight;
    say(row.end, number(log.visits[partition]));

    mark(row, "log", "rect", { class: "log", x: 0, y: bar, width: Math.max(0, x(end)), height: barHeight, rx: 3 });
    for (const item of again) {
      if (item.begin[partition] === undefined) continue;
      const left = x(item.begin[partition]);
      const width = Math.max(0, x(item.end[partition]) - left);
      const count = item.end[partition] - item.begin[partition];
      const name = `again-${item.engine}`;
      const words = `${item.engine === "flink" ? "Flink" : "Spark"} reads ${item.at_least ? "at least " : ""}${many(count, "visit")} again from ${item.name}`;
      const half = barHeight / 2;
      const top = again.length > 1 && item.engine === "spark" ? bar + half : bar;
      mark(row, name, "rect", { class: "again", x: left, y: top, width, height: again.length > 1 ? half : barHeight }, words);
      if (width > 48 && again.length === 1) {
        mark(row, `${name}-ground`, "rect", { class: "again-ground", x: left + width / 2 - 21, y: bar + 3, width: 42, height: barHeight - 6, rx: 3 });
        mark(row, `${name}-count`, "text", { class: "again-count", x: left + width / 2, y: bar + 16, "text-anchor": "middle" }, number(count));
      }
    }
    mark(row, "end", "rect", { class: "log-end", x: x(end) - 2, y: bar - 4, width: 2.5, height: barHeight + 8 });

    this.above(row, partition, x, flink, retained, at, log);
    this.below(row, partition, x, spark, foot);
    row.picture.setAttribute("aria-label", words(partition, log, flink, spark, retained));
    hideUnused(row);
  };

  // Flink: what each retained checkpoint holds, and where the job reads.
  Strips.prototype.above = function (row, partition, x, flink, retained, at, log) {
    const { bar, flink: top } = LANE;
    const held = ((retained && retained.checkpoints) || []).filter((each) => each.offsets && partition in each.offsets);
    const newest = held[held.length - 1];
    let position = flink && flink.position && flink.position[partition];
    const now = flink && this.store.at("flink", at);
    if (position !== undefined) position = between(now, this.store.next("flink", at), at, "position", partition);
    const reads = position !== undefined && flink.running > 0;
    const last = newest ? x(newest.offsets[partition]) : 0;
    const left = last > 70;
    held.forEach((each, place) => {
      const where = x(each.offsets[partition]);
      if (where < 0) return;
      // Where the name of the newest stands.
      const covered = left && where > last - NAME_WIDTH && where < last - 1;
      if (covered && !(flink && `${each.job_id}/${each.name}` === flink.restored)) return;
      const kind = each === newest ? "chk newest" : flink && `${each.job_id}/${each.name}` === flink.restored ? "chk restored" : "chk";
      const y = bar - 5;
      mark(row, `chk${place}`, "path", { class: kind, d: `M${where} ${y - 9}l4.5 4.5l-4.5 4.5l-4.5 -4.5z` }, `${each.name} holds offset ${number(each.offsets[partition])}`);
    });
    if (newest) {
      const where = x(newest.offsets[partition]);
      if (reads) mark(row, "since", "rect", { class: "since", x: where, y: bar - 2, width: Math.max(0, x(position) - where), height: 2 });
      mark(row, "chk-name", "text", { class: "flink-text", x: left ? where - 8 : where + 8, y: bar - 6, "text-anchor": left ? "end" : "start" }, newest.name);
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
    mark(row, "spark-name", "text", { class: "spark-text strong", x: left ? where - 10 : where + 10, y: y + 11, "text-anchor": left ? "end" : "start" }, `Spark ${number(spark.offsets[partition])}`);
  };

  // visit_windows: what readers get, and what is prepared and not committed.
  Strips.prototype.output = function (row, partition, log, next, at) {
    const end = between(log, next, at, "windows", partition);
    const stable = between(log, next, at, "stable", partition);
    const [low, high] = this.range("windows", partition, end, at);
    const x = (offset) => Math.max(0, Math.min(row.width, ((offset - low) / (high - low)) * row.width));
    const { bar, barHeight } = SMALL;
    const waiting = log.windows[partition] - log.stable[partition];
    mark(row, "stable", "rect", { class: "stable", x: 0, y: bar, width: x(stable), height: barHeight, rx: 3 }, `readers get it up to offset ${number(log.stable[partition])}`);
    if (waiting > 0) {
      mark(row, "prepared", "rect", { class: "prepared", x: x(stable), y: bar + 0.75, width: Math.max(3, x(end) - x(stable)), height: barHeight - 1.5, rx: 2 }, `${number(waiting)} prepared, not committed`);
      mark(row, "prepared-name", "text", { class: "quiet-text", x: x(stable) - 7, y: bar + 11, "text-anchor": "end" }, `${number(waiting)} not committed`);
    }
    say(row.end, number(log.stable[partition]));
    row.picture.setAttribute("aria-label", `visit_windows partition ${partition}: readers get it up to offset ${log.stable[partition]}, ${waiting} records are written and not committed`);
    hideUnused(row);
  };

  function words(partition, log, flink, spark, retained) {
    const parts = [`visits partition ${partition} ends at ${log.visits[partition]}`];
    if (flink && flink.position && partition in flink.position) parts.push(`Flink reads ${flink.position[partition]}`);
    const held = ((retained && retained.checkpoints) || []).filter((each) => each.offsets && partition in each.offsets).pop();
    if (held) parts.push(`${held.name} holds ${held.offsets[partition]}`);
    if (spark && partition in spark.offsets) parts.push(`Spark has committed ${spark.offsets[partition]}`);
    return parts.join(", ");
  }
  return Strips;
})();
