"use strict";
// In words: the state of everything at a moment, as status, inspector and verdict say it.
Faultline.panels = (() => {
  const { make, by, say, number, size, took, clock, sum, many } = Faultline.dom;
  const SHOWN = 6;
  const SIGNS = { running: "●", paused: "‖", exited: "○", absent: "·" };
  const OUTCOMES = { holds: "HOLDS", violated: "VIOLATED", unknown: "UNKNOWN" };
  const PHASES = { load: "visits are sent", break: "the fault", heal: "the repair", settle: "windows close", judge: "the verdict" };

  const latest = (store, what, at) => store.until("event", at).filter((item) => item.what === what).pop();

  // One word for the state of everything: no stack, starting, running, fault, restoring.
  function state(store, at, live) {
    const log = store.answer("log", "kafka", at);
    const flink = store.answer("flink", "flink", at);
    const services = store.at("services", at);
    const phase = latest(store, "phase", at);
    if (live && live.lost) return ["no server", "lost"];
    if (services && Object.values(services.states).every((each) => each === "absent" || each === "exited")) return ["no stack", "lost"];
    if (!services && flink.silent && (log.silent || !log.item)) return ["no stack", "lost"];
    if (phase && phase.text === "break") return ["fault", "fault"];
    // What ends by itself, and this page, are no fault.
    const down = services ? Object.entries(services.states).filter(([name]) => name !== "generator" && name !== "page") : [];
    if (down.some(([, each]) => each === "paused" || each === "exited")) return ["fault", "fault"];
    const ran = store.until("done", at).some((item) => item.engine === "flink");
    if (log.silent) return log.item ? ["fault", "fault"] : ["starting", "wait"];
    if (flink.silent || !flink.item) return ran ? ["fault", "fault"] : ["starting", "wait"];
    const { state: job, running, tasks } = flink.item;
    if (job === "RUNNING" && running === tasks) return log.item ? ["running", "well"] : ["starting", "wait"];
    if (["CANCELED", "CANCELLING", "FAILED", "FAILING", "SUSPENDED", "FINISHED"].includes(job)) return ["fault", "fault"];
    return ran ? ["restoring", "wait"] : ["starting", "wait"];
  }

  function story(store, at, data, live) {
    if (live && live.lost) return "The page's server does not answer. It is tried again every second; what is drawn is the last that was known.";
    const [word] = state(store, at, live);
    if (word === "no stack") return "No stack answers here. scripts/up.sh starts one; this page then goes on by itself.";
    const begin = latest(store, "phase", at);
    const command = latest(store, "command", at);
    const flink = store.answer("flink", "flink", at);
    const again = store.at("again", at);
    const since = (item) => `${Math.max(0, at - item.at).toFixed(0)} s ago`;
    const parts = [];
    if (begin && begin.text === "load" && data.promise) parts.push(`Promised: ${data.promise}.`);
    if (begin && begin.text === "break" && command) parts.push(`Broken ${since(command)} by ${command.text}.`);
    if (begin && begin.text === "heal" && command) parts.push(`Repaired ${since(command)} by ${command.text}.`);
    if (!begin && command && at - command.at < 60) parts.push(`${since(command)}: ${command.text}.`);
    if (begin && begin.text === "settle") parts.push("The generator has stopped; the open windows are closed, and both pipelines commit the rest.");
    if (begin && begin.text === "judge") parts.push(store.at("verdict", at) ? "The verdict has read all records, and counted." : "The verdict reads all records, and counts.");
    if (flink.silent) parts.push("The JobManager does not answer.");
    else if (flink.item) {
      const { state: job, running, tasks, restored } = flink.item;
      if (job !== "RUNNING") parts.push(`The Flink job is ${job}.`);
      else if (running < tasks) parts.push(`The Flink job starts: ${running} of ${tasks} tasks run.`);
      else if (again && again.engine === "flink" && `${again.job}/${again.name}` === restored && begin && begin.text === "heal") parts.push(`The Flink job runs again, from ${again.name}.`);
      else if (parts.length === 0) parts.push("Both pipelines read the log; every few seconds a checkpoint says how far.");
    }
    return parts.join(" ");
  }

  function again(store, at) {
    const found = ["flink", "spark"].map((engine) => store.until("again", at).filter((item) => item.engine === engine).pop());
    const shown = found.filter(Boolean).map((item) => {
      const who = item.engine === "flink" ? "Flink" : "Spark";
      return `${who} reads ${item.at_least ? "at least " : ""}${many(item.visits, "visit")} again, from ${item.name}`;
    });
    say(by("again"), shown.join("; "));
  }

  function verdict(store, at) {
    const item = store.at("verdict", at);
    const place = by("verdict");
    const key = item ? String(item.at) : "";
    if (place.dataset.shown === key) return;
    place.dataset.shown = key;
    if (!item) {
      place.replaceChildren();
      return;
    }
    const all = item.verdict;
    const each = [...(all.verdicts || [all]), ...(all.source ? [all.source] : [])];
    const lines = each.map((one) => make("li", {}, make("b", { text: one.pipeline }), ` ${one.outcome}: ${counted(one)}`));
    const records = each.flatMap((one) => (one.examples || []).map((example) => make("li", { text: `${one.pipeline}: ${sentence(example)}` })));
    const more = records.length ? [make("details", {}, make("summary", { text: `the records (${records.length} of them)` }), make("ul", {}, ...records))] : [];
    place.replaceChildren(make("p", { class: `outcome ${all.outcome}`, text: OUTCOMES[all.outcome] || all.outcome }), make("ul", { class: "reasons" }, ...lines), ...more);
  }
  function counted(one) {
    const wrong = ["lost", "duplicated", "unexpected", "disordered"].filter((name) => one[name]);
    if (one.outcome === "holds" || !wrong.length) return one.reason;
    return wrong.map((name) => `${number(one[name])} ${name}`).join(", ");
  }
  function sentence(example) {
    return Object.values(example).filter((value) => value !== null && value !== "").join(" ");
  }

  function facts(store, at) {
    const flink = store.answer("flink", "flink", at);
    const spark = store.answer("spark", "spark", at);
    const lines = [];
    if (flink.silent || !flink.item) lines.push(["Flink job", flink.silent ? "does not answer" : "none yet"]);
    else {
      const item = flink.item;
      lines.push(["Flink job", item.state], ["tasks", `${item.running} of ${item.tasks}`], ["restarts", number(item.restarts)]);
      lines.push(["restored from", item.restored ? item.restored.split("/")[1] : "nothing"]);
    }
    if (!spark.item) lines.push(["Spark batch", "none yet"]);
    else {
      const planned = spark.item.planned;
      lines.push(["Spark batch", `${number(spark.item.batch)} committed`]);
      lines.push(["planned", planned ? `batch ${planned.batch}, ${many(planned.visits, "visit")}` : "nothing"]);
    }
    const place = by("facts");
    lines.forEach(([name, value], row) => {
      if (!place.children[row * 2]) place.append(make("dt"), make("dd"));
      say(place.children[row * 2], name);
      say(place.children[row * 2 + 1], value);
    });
    while (place.children.length > lines.length * 2) place.lastChild.remove();
    const services = store.at("services", at);
    const shown = services ? Object.entries(services.states) : [];
    const list = by("services");
    shown.forEach(([name, word], row) => {
      const item = list.children[row] || list.appendChild(make("li"));
      item.className = word;
      say(item, `${SIGNS[word] || "?"} ${name} ${word}`);
    });
    while (list.children.length > shown.length) list.lastChild.remove();
  }

  function done(store, at, open) {
    const shown = store.until("done", at).filter((item) => item.engine === "flink").slice(-SHOWN + 2);
    const batches = store.until("done", at).filter((item) => item.engine === "spark").slice(-2);
    const all = [...shown, ...batches].sort((one, other) => other.at - one.at);
    const body = by("done");
    all.forEach((item, row) => {
      const line = body.children[row] || body.appendChild(make("tr", {}, make("th", { scope: "row" }), make("td", { class: "number" }), make("td", { class: "number" }), make("td", { class: "number" })));
      const name = line.children[0];
      const key = `${item.job}/${item.name}`;
      if (name.dataset.key !== key) {
        name.dataset.key = key;
        name.replaceChildren(open && item.engine === "flink" ? make("button", { type: "button", class: "plain", text: item.name, onclick: () => open(item) }) : item.name);
      }
      line.className = item.engine;
      say(line.children[1], took(item.milliseconds));
      say(line.children[2], size(item.bytes));
      say(line.children[3], `${Math.max(0, at - item.at).toFixed(0)} s`);
    });
    while (body.children.length > all.length) body.lastChild.remove();
  }

  function happened(store, at, seek) {
    const list = by("happened");
    const events = store.of("event").filter((item) => item.what !== "broken");
    const fault = store.of("event").find((item) => item.what === "phase" && item.text === "break");
    const zero = fault ? fault.at : store.begin;
    if (Number(list.dataset.count || 0) !== events.length) {
      list.dataset.count = events.length;
      list.replaceChildren(
        ...events.map((item) => {
          const seconds = item.at - zero;
          const text = item.what === "phase" ? PHASES[item.text] || item.text : item.text;
          const button = make("button", { type: "button", class: "plain", onclick: () => seek(item.at) }, make("span", { class: "number", text: `${seconds < 0 ? "−" : "+"}${Math.abs(seconds).toFixed(1)} s` }), make(item.what === "command" ? "code" : "span", { text }));
          return make("li", { class: item.what, "data-at": item.at }, button);
        }),
      );
    }
    let last = null;
    for (const line of list.children) {
      const past = Number(line.dataset.at) <= at + 0.01;
      line.classList.toggle("future", !past);
      line.classList.remove("current");
      if (past) last = line;
    }
    if (last) last.classList.add("current");
  }

  function committed(store, at) {
    const count = store.until("windows", at).reduce((total, item) => total + item.count, 0);
    const log = store.at("log", at);
    const waiting = log ? sum(log.windows) - sum(log.stable) : 0;
    const read = count ? `${many(count, "window")} read since the beginning; ` : "";
    say(by("committed"), `${read}${waiting ? `${many(waiting, "record")} prepared and not committed` : "nothing waits for a commit"}`);
  }

  function judged(data) {
    if (!data.checks || !data.checks.length) return;
    by("judged").hidden = false;
    by("checks").replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { text: "" }), make("th", { text: "judged" }), make("th", { text: "seen" }))),
      make("tbody", {}, ...data.checks.map((check) => make("tr", { class: check.ok ? "ok" : "failed" }, make("td", { text: check.ok ? "✓ ok" : "✗ FAILED" }), make("td", { text: check.what }), make("td", { class: "number", text: check.ok ? check.seen : `${check.seen}, expected ${check.expected}` })))),
    );
    by("times").replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { text: "after the fault" }), make("th", { class: "number", text: "seconds" }))),
      make("tbody", {}, ...Object.entries(data.times).map(([name, seconds]) => make("tr", {}, make("td", { text: name }), make("td", { class: "number", text: seconds.toFixed(1) })))),
    );
  }

  function show(title, text) {
    by("words-title").textContent = title;
    by("text").textContent = text;
    if (!by("words").open) by("words").showModal();
  }
  return { state, story, again, verdict, facts, done, happened, committed, judged, show, clock };
})();
