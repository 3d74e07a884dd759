"use strict";
// The verdict in large letters: when it was reached, what it counts, and what has come since.
Faultline.verdict = (() => {
  const { make, by, say, number, clock, sum, many } = Faultline.dom;
  const OUTCOMES = { holds: "HOLDS", violated: "VIOLATED", unknown: "UNKNOWN" };
  const COUNTED = ["lost", "duplicated", "unexpected", "disordered"];

  function show(store, at) {
    const item = store.at("verdict", at);
    const place = by("verdict");
    const key = item ? String(item.at) : "";
    if (place.dataset.shown !== key) {
      place.dataset.shown = key;
      place.replaceChildren(...(item ? parts(item) : []));
    }
    if (item) age(store, at, item, place);
  }
  function parts(item) {
    const all = item.verdict;
    const each = [...(all.verdicts || [all]), ...(all.source ? [all.source] : [])];
    const lines = each.map((one) => make("li", {}, make("b", { text: one.pipeline }), ` ${one.outcome}: ${why(one)}`));
    const records = each.flatMap((one) => (one.examples || []).map((example) => make("li", { text: `${one.pipeline}: ${sentence(example)}` })));
    const more = records.length ? [make("details", {}, make("summary", { text: `the records (${records.length} of them)` }), make("ul", {}, ...records))] : [];
    return [
      make("p", { class: `outcome ${all.outcome}`, text: OUTCOMES[all.outcome] || all.outcome }),
      make("div", {}, make("p", { class: "age number", text: judged(item) }), make("ul", { class: "reasons" }, ...lines), ...more),
    ];
  }
  function age(store, at, item, place) {
    // Of a verdict that is older than what is kept, it is a lower bound.
    const known = store.at("log", item.at);
    const [then, now] = [known || store.of("log")[0], store.at("log", at)];
    const since = then && now ? Math.max(0, sum(now.visits) - sum(then.visits)) : 0;
    const visits = `${known ? "" : "at least "}${many(since, "visit")}`;
    say(place.querySelector(".age"), since ? `${judged(item)}; ${visits} ${since === 1 ? "has" : "have"} come since` : judged(item));
    place.classList.toggle("old", since > 0);
  }
  const judged = (item) => `judged ${clock(item.at)}${item.as_is ? ", while the stack ran" : ""}`;
  // Only what violates is counted: of what is unknown the reason is to be seen.
  function why(one) {
    const wrong = COUNTED.filter((name) => one[name]);
    if (one.outcome !== "violated" || !wrong.length) return one.reason;
    return wrong.map((name) => `${number(one[name])} ${name}`).join(", ");
  }
  const sentence = (example) => Object.values(example).filter((value) => value !== null && value !== "").join(" ");
  return { show, parts };
})();
