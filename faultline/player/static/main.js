"use strict";
// Puts the parts together: a recorded run plays at once; for a running stack live.js adds what comes.
Faultline.start = () => {
  const { make, by, say, clock, still } = Faultline.dom;
  const data = JSON.parse(by("data").textContent);
  const fixed = data.mode === "replay";
  const store = new Faultline.store(fixed);
  for (const item of data.items) store.add(item);
  const live = fixed ? null : { lost: false, full: 0, skew: 0 };
  const { panels, state } = Faultline;
  const strips = new Faultline.strips(store, fixed, data.partitions || 0, () => player && player.draw());
  let chart = null;
  let slow = 0;

  const inspected = data.inspector || {};
  const spark = Object.keys(inspected).filter((name) => name.startsWith("spark_"));
  const said = ({ job, name }) => panels.show(name, inspected[`${job}/${name}`] || "The inspector has not opened this checkpoint.");
  // A recorded run has the inspector's words on each checkpoint, a file that was saved from a live page none.
  const open = live ? (item) => live.open(item) : Object.keys(inspected).length > spark.length ? said : null;

  function show(at) {
    say(by("clock"), store.version ? clock(at) : "");
    const log = store.answer("log", "kafka", at);
    strips.show(at, live && live.lost ? "" : log.silent ? `Kafka does not answer: ${log.silent}` : "", Boolean(player && player.following));
    if (chart) chart.show(at);
    // Words change a few times a second, not with each frame.
    const now = performance.now();
    if (now - slow < 120 && player && (player.playing || player.following)) return;
    slow = now;
    const [word, kind] = state.word(store, at, live);
    say(by("state"), word);
    by("state").className = `pill ${kind}`;
    say(by("story"), state.story(store, at, data, live));
    say(by("again"), state.again(store, at));
    Faultline.verdict.show(store, at);
    panels.facts(store, at);
    panels.done(store, at, open);
    panels.committed(store, at);
    panels.happened(store, at, (moment) => player.seek(moment, true));
  }

  let player = null;
  player = new Faultline.Player(store, live, show);
  by("log-legend").replaceChildren(
    make("li", { class: "key reads", text: "Flink reads here" }),
    make("li", { class: "key chk", text: "a checkpoint of Flink holds this" }),
    make("li", { class: "key restored", text: "restored from this" }),
    make("li", { class: "key reread", text: "read again" }),
    make("li", { class: "key committed", text: "Spark has committed" }),
    make("li", { class: "key planned", text: "a batch is planned" }),
    make("li", { class: "key prepared", text: "written, not committed" }),
  );
  say(by("title"), data.title);
  if (data.why) by("title").title = data.why;
  for (const name of spark) {
    const title = name.replace("spark_", "Spark's checkpoint, ");
    by("inspected").append(make("button", { type: "button", class: "link", text: title, onclick: () => panels.show(title, inspected[name]) }), " ");
  }
  by("close").addEventListener("click", () => by("words").close());
  const themes = make("button", { type: "button", text: "light or dark", onclick: () => {
    const chosen = document.documentElement.dataset;
    const system = window.matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
    chosen.theme = (chosen.theme || system) === "dark" ? "light" : "dark";
    if (chart) chart.build();
  } });
  by("tools").append(themes);
  panels.judged(data);
  say(by("keys"), `Space ${fixed ? "plays and pauses" : "pauses and goes on"}. Arrow keys move by a second, with Shift by ten.${fixed ? " F goes to the fault." : ""}`);

  chart = new Faultline.chart(store, fixed, (at) => player.seek(at, true));
  player.start();
  if (fixed) {
    // An address that ends in #31.5 opens at that second, and waits.
    const second = Number.parseFloat(location.hash.slice(1));
    const fault = store.of("event").find((item) => item.what === "phase" && item.text === "break");
    if (second >= 0) player.seek(store.begin + second, true);
    else {
      player.seek(fault ? fault.at - 6 : store.begin, true);
      if (!still.matches) player.toggle();
    }
    document.body.classList.remove("loading");
  }
  return { data, store, live, player, strips, panels };
};
Faultline.page = Faultline.start();
