"use strict";
// In words: the state of everything at a moment, as status, inspector and verdict say it.
Faultline.panels = (() => {
  const { make, by, say, lines, number, size, took, sum, many } = Faultline.dom;
  const SHOWN = 6;
  const SIGNS = { running: "●", answers: "●", visits: "●", paused: "‖", silent: "‖", exited: "○" };
  const PHASES = { load: "visits are sent", break: "the fault", heal: "the repair", settle: "windows close", judge: "the verdict" };

  // What does not answer is not known, whatever it said before.
  function facts(store, at) {
    const flink = store.answer("flink", "flink", at);
    const spark = store.answer("spark", "spark", at);
    const told = (answer, words) => (answer.silent ? "not known" : answer.item ? words(answer.item) : "none yet");
    const batch = ({ planned }) => (planned ? `batch ${number(planned.batch)}, ${many(planned.visits, "visit")}` : "nothing");
    const known = [
      ["Flink job", told(flink, (item) => item.state)],
      ["tasks", told(flink, (item) => `${item.running} of ${item.tasks}`)],
      ["restarts", told(flink, (item) => number(item.restarts))],
      ["restored from", told(flink, (item) => (item.restored ? item.restored.split("/")[1] : "nothing"))],
      ["Spark batch", told(spark, (item) => `${number(item.batch)} committed`)],
      ["planned", told(spark, batch)],
    ];
    const place = by("facts");
    known.forEach(([name, value], row) => {
      if (!place.children[row * 2]) place.append(make("dt"), make("dd"));
      say(place.children[row * 2], name);
      say(place.children[row * 2 + 1], value);
    });
    services(store.answer("services", "services", at));
  }
  function services({ item, silent }) {
    const shown = silent ? [["services", "not known"]] : item ? Object.entries(item.states) : [];
    const list = by("services");
    shown.forEach(([name, word], row) => {
      const line = list.children[row] || list.appendChild(make("li"));
      line.className = word.split(" ")[0];
      say(line, `${SIGNS[line.className] || "·"} ${name} ${word}`);
    });
    while (list.children.length > shown.length) list.lastChild.remove();
    say(by("services-note"), silent || (item && !item.processes ? "This page cannot see processes; scripts/status.sh can." : ""));
  }

  function done(store, at, open) {
    const shown = store.until("done", at).filter((item) => item.engine === "flink").slice(-SHOWN + 2);
    const batches = store.until("done", at).filter((item) => item.engine === "spark").slice(-2);
    const all = [...shown, ...batches].sort((one, other) => other.at - one.at);
    const fresh = (item) => make("tr", { class: item.engine },
      make("th", { scope: "row" }, open && item.engine === "flink" ? make("button", { type: "button", class: "plain", text: item.name, onclick: () => open(item) }) : item.name),
      make("td", { class: "number", text: took(item.milliseconds) }), make("td", { class: "number", text: size(item.bytes) }), make("td", { class: "number" }),
    );
    lines(by("done"), all, (item) => `${item.job}/${item.name}`, fresh).forEach((line, row) => {
      say(line.lastChild, `${Math.max(0, at - all[row].at).toFixed(0)} s`);
    });
  }

  function happened(store, at, seek) {
    const events = store.of("event").filter((item) => item.what !== "broken");
    const fault = store.of("event").find((item) => item.what === "phase" && item.text === "break");
    const zero = fault ? fault.at : store.begin;
    const fresh = (item) => {
      const text = item.what === "phase" ? PHASES[item.text] || item.text : item.text;
      const button = make("button", { type: "button", class: "plain", onclick: () => seek(item.at) }, make("span", { class: "number" }), make(item.what === "command" ? "code" : "span", { text }));
      return make("li", { class: item.what }, button);
    };
    const shown = lines(by("happened"), events, (item) => `${item.at}/${item.what}/${item.text}`, fresh);
    const past = events.filter((item) => item.at <= at + 0.01).length;
    shown.forEach((line, row) => {
      const seconds = events[row].at - zero;
      say(line.querySelector(".number"), `${seconds < 0 ? "−" : "+"}${Math.abs(seconds).toFixed(1)} s`);
      line.classList.toggle("future", row >= past);
      line.classList.toggle("current", row === past - 1);
    });
  }

  function committed(store, at) {
    const item = store.at("windows", at);
    const log = store.at("log", at);
    const waiting = log ? sum(log.windows) - sum(log.stable) : 0;
    const parts = [item ? `${many(item.total, "committed window")} read here` : ""];
    if (log) parts.push(waiting ? `${many(waiting, "record")} written, not committed` : "nothing waits for a commit");
    say(by("committed"), parts.filter(Boolean).join("; "));
  }

  // How a recorded row ended, with its reason and what it was judged by.
  function judged(data) {
    if (!data.outcome) return;
    const failed = data.outcome !== "passed";
    by("judged").hidden = false;
    say(by("outcome"), `${failed ? `✗ ${data.outcome.toUpperCase()}` : "✓ passed"}${data.reason ? `: ${data.reason}` : ""}`);
    by("outcome").className = failed ? "failed" : "ok";
    const checks = data.checks || [];
    by("checks").replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { text: "" }), make("th", { text: "judged" }), make("th", { text: "seen" }))),
      make("tbody", {}, ...checks.map((check) => make("tr", { class: check.ok ? "ok" : "failed" }, make("td", { text: check.ok ? "✓ ok" : "✗ FAILED" }), make("td", { text: check.what }), make("td", { class: "number", text: check.ok ? check.seen : `${check.seen}, expected ${check.expected}` })))),
    );
    by("times").replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { text: "after the fault" }), make("th", { class: "number", text: "seconds" }))),
      make("tbody", {}, ...Object.entries(data.times || {}).map(([name, seconds]) => make("tr", {}, make("td", { text: name }), make("td", { class: "number", text: seconds.toFixed(1) })))),
    );
  }

  function show(title, text) {
    by("words-title").textContent = title;
    by("text").textContent = text;
    if (!by("words").open) by("words").showModal();
  }
  return { facts, done, happened, committed, judged, show };
})();
