"use strict";
// One word for the state of everything at a moment, and the sentences that say why.
Faultline.state = (() => {
  const { ago, many } = Faultline.dom;
  const ENDED = ["CANCELED", "CANCELLING", "FAILED", "FAILING", "SUSPENDED", "FINISHED"];
  // What ends by itself, and this page, are no fault.
  const SPARED = ["generator", "page"];

  const latest = (store, what, at) => store.until("event", at).filter((item) => item.what === what).pop();
  const runs = (flink) => Boolean(flink.item) && !flink.silent && flink.item.state === "RUNNING" && flink.item.running === flink.item.tasks;
  const gone = (item, word) => (item.processes ? word === "absent" || word === "exited" : word.startsWith("silent"));
  const wrong = (item, word) => gone(item, word) || word === "paused" || word === "not registered";

  // States of processes, or what answers; null when neither is known.
  function services(store, at) {
    const { item, silent } = store.answer("services", "services", at);
    return silent ? null : item;
  }
  function isNone(item) {
    // What is asked over the network, each with its copies: jobmanager, jobmanager-2.
    const asked = Object.entries(item.states).filter(([name]) => item.processes || /^(kafka|jobmanager|spark)(-\d+)?$/.test(name));
    return asked.every(([, word]) => gone(item, word));
  }
  function broken(item) {
    return item ? Object.entries(item.states).filter(([name, word]) => !SPARED.includes(name) && wrong(item, word)) : [];
  }
  // Whether a checkpoint was completed since there was no stack the last time.
  function ran(store, at) {
    const none = store.until("services", at).filter(isNone).pop();
    return store.until("done", at).some((item) => item.engine === "flink" && (!none || item.at > none.at));
  }

  function word(store, at, live) {
    const log = store.answer("log", "kafka", at);
    const flink = store.answer("flink", "flink", at);
    const seen = services(store, at);
    const phase = latest(store, "phase", at);
    if (live && live.full) return ["full", "lost"];
    if (live && live.lost) return ["no server", "lost"];
    if (seen ? isNone(seen) : flink.silent && (log.silent || !log.item)) return ["no stack", "lost"];
    if (phase && phase.text === "break") return ["fault", "fault"];
    const bad = ran(store, at) ? ["fault", "fault"] : ["starting", "wait"];
    if (broken(seen).length || log.silent || flink.silent) return bad;
    // Not asked yet.
    if (!log.item || !flink.item) return ["starting", "wait"];
    if (ENDED.includes(flink.item.state)) return ["fault", "fault"];
    if (runs(flink)) return ["running", "well"];
    return ran(store, at) ? ["restoring", "wait"] : ["starting", "wait"];
  }

  function story(store, at, data, live) {
    if (live && live.full) return `${live.full} pages are open, and the server allows no more. Close one; this page tries again by itself.`;
    if (live && live.lost) return "The page's server does not answer. The page tries again every second. It shows the last known state.";
    const [now] = word(store, at, live);
    if (now === "no stack") return "No stack answers here. scripts/up.sh starts one; this page then goes on by itself.";
    const phase = latest(store, "phase", at);
    const command = latest(store, "command", at);
    const parts = [];
    if (phase && phase.text === "load" && data.promise) parts.push(`Promised: ${data.promise}.`);
    if (phase && phase.text === "break" && command) parts.push(`Broken ${ago(at - command.at)} by ${command.text}.`);
    if (phase && phase.text === "heal" && command) parts.push(`Repaired ${ago(at - command.at)} by ${command.text}.`);
    if (!phase && command && at - command.at < 60) parts.push(`${ago(at - command.at)}: ${command.text}.`);
    if (phase && phase.text === "settle") parts.push("The generator has stopped; the open windows are closed, and both pipelines commit the rest.");
    if (phase && phase.text === "judge") parts.push(store.at("verdict", at) ? "The verdict has read and counted all records." : "The verdict reads and counts all records.");
    return [...parts, ...engines(store, at, now, phase, parts.length === 0)].join(" ");
  }
  // What is wrong, or that nothing is.
  function engines(store, at, now, phase, alone) {
    const flink = store.answer("flink", "flink", at);
    const spark = store.answer("spark", "spark", at);
    const again = store.at("again", at);
    const parts = broken(services(store, at)).map(([name, state]) => `${name}: ${state}.`);
    if (store.answer("log", "kafka", at).silent) parts.push("Kafka does not answer.");
    if (flink.silent) parts.push(`The state of the Flink job is not known: ${flink.silent}.`);
    else if (flink.item && flink.item.state !== "RUNNING") parts.push(`The Flink job is ${flink.item.state}.`);
    else if (flink.item && !runs(flink)) parts.push(`The Flink job starts: ${flink.item.running} of ${flink.item.tasks} tasks run.`);
    else if (again && `${again.job}/${again.name}` === flink.item?.restored && phase && phase.text === "heal") parts.push(`The Flink job runs again, from ${again.name}.`);
    if (parts.length || !alone || now !== "running") return parts;
    if (spark.silent || !spark.item) return ["Flink reads the log. No committed batch of Spark is known."];
    return ["Both pipelines read the log; every few seconds a checkpoint says how far."];
  }

  // What is read again: first the job goes back, then it reads, and then it has read.
  function again(store, at) {
    const found = ["flink", "spark"].map((engine) => store.until("again", at).filter((item) => item.engine === engine).pop());
    // Of at least 0 visits nothing is known.
    return found.filter((item) => item && item.visits).map((item) => (item.engine === "flink" ? byFlink(store, at, item) : bySpark(store, at, item))).join("; ");
  }
  function byFlink(store, at, item) {
    const visits = `at least ${many(item.visits, "visit")}`;
    // A partition of which nothing is read again may have no position until its next visit.
    const lacks = (each, partition, end) => end > (item.begin[partition] || 0) && !((each.position || {})[partition] >= end);
    const reached = (each) => !Object.entries(item.end).some(([partition, end]) => lacks(each, partition, end));
    const read = store.until("flink", at).find((each) => each.at >= item.at && reached(each));
    if (read) return `Flink has read ${visits} again, from ${item.name}, ${ago(at - read.at)}`;
    if (runs(store.answer("flink", "flink", at))) return `Flink reads ${visits} again, from ${item.name}`;
    return `Flink goes back to ${item.name}: ${visits}`;
  }
  function bySpark(store, at, item) {
    const visits = many(item.visits, "visit");
    const read = store.until("spark", at).find((each) => each.at >= item.at && each.batch >= item.batch);
    return read ? `Spark has read ${visits} again, from ${item.name}, ${ago(at - read.at)}` : `Spark reads ${visits} again, from ${item.name}`;
  }
  return { word, story, again, services };
})();
