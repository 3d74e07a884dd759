"use strict";
// The whole run at one look: how far the log, Flink and Spark are, with what happened marked on it (uPlot).
Faultline.chart = (() => {
  const { make, by, number, snapped, sum, colour } = Faultline.dom;
  const HEIGHT = 190;
  const LIVE_SECONDS = 180;
  const MAKE_MS = 1000;
  // From one line of the grid to the next.
  const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600];
  // uPlot: a null is a gap up to the next value of its own series.
  const EXPAND = 2;
  const SERIES = [
    { name: "visits in the log", key: "log", colour: "--log-line", width: 1.5, dash: [] },
    { name: "Flink has read", key: "flink", colour: "--flink", width: 2, dash: [] },
    { name: "Spark has committed", key: "spark", colour: "--spark", width: 2, dash: [6, 4], stepped: true },
  ];
  const TOTALS = {
    log: (store) => store.of("log").map((item) => [item.at, sum(item.visits)]),
    // Where no position was sampled, what the job has committed.
    flink(store) {
      const read = store.of("flink").filter((item) => Object.keys(item.position || {}).length);
      // After a restore a partition has no position until its next visit: it is where it was.
      const known = {};
      const total = (item) => sum(Object.assign(known, item.position));
      if (read.length) return read.map((item) => [item.at, item.running === item.tasks ? total(item) : null]);
      return store.of("log").map((item) => [item.at, Object.keys(item.group || {}).length ? sum(item.group) : null]);
    },
    spark: (store) => store.of("spark").map((item) => [item.at, sum(item.offsets)]),
  };
  const SOURCES = { log: "kafka", flink: "flink", spark: "spark" };

  // What is the same has no new item, so a value holds until the next one; what does not answer is a gap.
  function points(store, key) {
    const values = TOTALS[key](store);
    const silences = store.of("unknown").filter((item) => item.source === SOURCES[key]);
    const down = key === "flink" ? store.of("flink").filter((item) => item.running < item.tasks) : [];
    const gaps = [...silences, ...down].map((item) => [item.at, null]);
    const all = [...values, ...gaps].sort((one, other) => one[0] - other[0]);
    const last = all[all.length - 1];
    if (last && last[1] !== null) all.push([store.end, last[1]]);
    return all.filter((point, place) => place === 0 || point[0] > all[place - 1][0]);
  }

  function Chart(store, fixed, seek) {
    this.store = store;
    this.fixed = fixed;
    this.seek = seek;
    this.begin = store.begin;
    this.at = store.end;
    this.shown = -1;
    this.made = 0;
    by("time-legend").replaceChildren(
      ...SERIES.map((each) => make("li", { class: `key line ${each.key}`, text: each.name })),
      make("li", { class: "key fault", text: this.phased() ? "the fault" : "Flink does not run" }),
      make("li", { class: "key tick", text: "a checkpoint of Flink" }),
    );
    new ResizeObserver(() => this.build()).observe(by("chart"));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
    this.build();
  }

  Chart.prototype.data = function () {
    const tables = SERIES.map((each) => {
      const found = points(this.store, each.key);
      return [found.map((point) => point[0] - this.begin), found.map((point) => point[1])];
    });
    const filled = tables.map((table) => (table[0].length ? table : [[0], [null]]));
    return uPlot.join(filled, filled.map(() => [0, EXPAND]));
  };

  Chart.prototype.build = function () {
    const width = Math.round(by("chart").clientWidth);
    if (!width || (this.plot && this.plot.width === width && this.theme === colour("--ground"))) return;
    this.theme = colour("--ground");
    if (this.plot) this.plot.destroy();
    this.line = null;
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const options = {
      width, height: HEIGHT, legend: { show: false }, padding: [8, 16, 0, 0],
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false, bind: { mousedown: (plot, target, handler) => (event) => { this.click(event); return handler(event); } } },
      scales: {
        x: { time: false, range: () => [this.fixed ? 0 : Math.max(0, this.at - this.begin - LIVE_SECONDS), Math.max(10, this.store.end - this.begin)] },
        // Without a range the axis takes no room, and the chart would move at the first sample.
        y: { range: (plot, lowest, highest) => (lowest === null ? [0, 10] : uPlot.rangeNum(lowest, highest, 0.1, true)) },
      },
      axes: [
        { ...axis, size: 26, incrs: SECONDS, values: (plot, values) => values.map((value) => `${number(Math.round(value))} s`) },
        { ...axis, size: 56, values: (plot, values) => values.map((value) => number(value)) },
      ],
      series: [{}, ...SERIES.map((each) => ({ stroke: colour(each.colour), width: each.width, dash: each.dash, spanGaps: false, points: { show: false }, paths: each.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined }))],
      hooks: { drawClear: [(plot) => this.behind(plot)], draw: [(plot) => { this.before(plot); this.place(); }] },
    };
    this.shown = this.store.version;
    this.plot = new uPlot(options, this.data(), by("chart"));
    this.line = make("div", { class: "playhead" });
    this.plot.over.append(this.line);
    this.show(this.at);
  };

  Chart.prototype.click = function (event) {
    const left = event.clientX - this.plot.over.getBoundingClientRect().left;
    this.seek(this.begin + this.plot.posToVal(left, "x"));
  };

  // From the fault to the repair in a recorded row; in a running stack, where Flink does not run.
  Chart.prototype.behind = function (plot) {
    const context = plot.ctx;
    context.save();
    context.fillStyle = colour("--fault-ground");
    const ranges = this.phased() ? this.faults() : this.downs();
    for (const [from, to] of ranges) {
      const left = plot.valToPos(Math.max(from, this.begin) - this.begin, "x", true);
      context.fillRect(left, plot.bbox.top, Math.max(2, plot.valToPos(to - this.begin, "x", true) - left), plot.bbox.height);
    }
    context.restore();
  };

  Chart.prototype.phased = function () {
    return this.store.of("event").some((item) => item.what === "phase");
  };
  Chart.prototype.faults = function () {
    const phases = this.store.of("event").filter((item) => item.what === "phase");
    return this.ranges(phases.map((item) => [item.at, item.text === "break"]));
  };
  Chart.prototype.downs = function () {
    return this.ranges(this.store.of("flink").map((item) => [item.at, item.running < item.tasks]));
  };
  // From each moment at which something is so to the next at which it is not.
  Chart.prototype.ranges = function (moments) {
    const found = [];
    let since = null;
    for (const [at, is] of moments) {
      if (is && since === null) since = at;
      else if (!is && since !== null) {
        found.push([since, at]);
        since = null;
      }
    }
    if (since !== null) found.push([since, this.store.end]);
    return found;
  };

  Chart.prototype.before = function (plot) {
    const context = plot.ctx;
    const ratio = devicePixelRatio || 1;
    const foot = plot.bbox.top + plot.bbox.height;
    const inside = (at) => at >= this.begin + plot.scales.x.min - 0.01 && at <= this.begin + plot.scales.x.max;
    context.save();
    context.fillStyle = colour("--flink");
    for (const item of this.store.of("done")) {
      if (item.engine !== "flink" || !inside(item.at)) continue;
      context.fillRect(plot.valToPos(item.at - this.begin, "x", true), foot - 7 * ratio, 1.5 * ratio, 7 * ratio);
    }
    context.strokeStyle = colour("--quiet");
    context.setLineDash([3 * ratio, 3 * ratio]);
    for (const item of this.store.of("event")) {
      if (item.what !== "command" || !inside(item.at)) continue;
      const left = Math.round(plot.valToPos(item.at - this.begin, "x", true)) + 0.5;
      context.beginPath();
      context.moveTo(left, plot.bbox.top);
      context.lineTo(left, foot);
      context.stroke();
    }
    context.restore();
  };

  Chart.prototype.show = function (at) {
    this.at = at;
    if (!this.plot) return;
    if (!this.fixed && this.shown !== this.store.version && performance.now() - this.made > MAKE_MS) {
      this.shown = this.store.version;
      this.made = performance.now();
      this.begin = this.store.begin;
      this.plot.setData(this.data());
    }
    this.place();
  };

  Chart.prototype.place = function () {
    if (!this.line) return;
    const left = this.plot.valToPos(this.at - this.begin, "x");
    this.line.style.transform = `translateX(${snapped(Math.max(0, Math.min(this.plot.over.clientWidth, left || 0)))}px)`;
  };
  return Chart;
})();
