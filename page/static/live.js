"use strict";
// A running stack: what comes from the server, what is kept in a file, the buttons, the lessons.
(() => {
  const { make, by, say } = Faultline.dom;
  const { data, store, live, player, begin, panels } = Faultline.page;
  const GROUPS = { break: "Break", repair: "Repair", judge: "Load, and judge" };

  // The token comes after # in the address, and leaves it at once: nobody reads it from a projector.
  const token = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("token") || "";
  if (token) sessionStorage.setItem("token", token);
  if (location.hash) history.replaceState(null, "", location.pathname);

  // What comes

  function clockOf(message) {
    live.skew = message.now - Date.now() / 1000;
    if (live.lost) say(by("said"), "");
    live.lost = false;
  }
  function take(items) {
    for (const item of items) store.add(item);
    begin();
  }
  const source = new EventSource("/events");
  source.addEventListener("all", (event) => {
    const message = JSON.parse(event.data);
    clockOf(message);
    store.kinds = {};
    take(message.items);
  });
  source.addEventListener("more", (event) => {
    const message = JSON.parse(event.data);
    clockOf(message);
    take(message.items);
    offer();
  });
  source.addEventListener("tick", (event) => {
    const message = JSON.parse(event.data);
    clockOf(message);
    offer();
  });
  source.addEventListener("full", () => {
    source.close();
    live.lost = true;
    say(by("said"), "As many pages are open as the server serves. Close one, and load this page again.");
  });
  source.addEventListener("error", () => {
    live.lost = true;
    if (!store.version) say(by("story"), panels.story(store, 0, data, live));
  });

  // What is kept

  by("tools").prepend(make("a", { class: "button", href: "/saved", download: "", text: "save as a file" }));
  live.open = ({ job, name }) => {
    const list = (store.of("retained").slice(-1)[0] || { checkpoints: [] }).checkpoints;
    if (!list.some((each) => each.job_id === job && each.name === name)) {
      panels.show(name, "This checkpoint is not retained any more.");
      return;
    }
    panels.show(name, "The inspector opens it ...");
    fetch(`/checkpoint/${job}/${name}`)
      .then((answer) => answer.text())
      .then((text) => panels.show(name, text), () => panels.show(name, "The page's server does not answer."));
  };

  // The buttons

  const place = by("live");
  const said = make("p", { id: "said", role: "status", "aria-live": "polite" });
  let choice = null;
  async function act(action) {
    say(said, `${action.label} ...`);
    const body = { action: action.name };
    if (action.chooses) body.checkpoint = choice.value;
    try {
      const answer = await fetch("/act", { method: "POST", headers: { "content-type": "application/json", "x-faultline-token": token }, body: JSON.stringify(body) });
      const text = (await answer.text()).trim();
      if (!answer.ok) say(said, text);
    } catch {
      say(said, "The page's server does not answer.");
    }
  }
  const button = (action) =>
    make("button", { type: "button", class: "act", "data-action": action.name, onclick: () => act(action) }, make("span", { text: action.label }), make("code", { text: action.lines.join("\n") }));

  // The newest checkpoints to choose from; the choice stays while the list changes.
  function offer() {
    if (!choice) return;
    const list = (store.of("retained").slice(-1)[0] || { checkpoints: [] }).checkpoints;
    const values = list.map((each) => `${each.job_id}/${each.name}`).reverse();
    const key = values.join();
    if (choice.dataset.key === key) return;
    const chosen = choice.value;
    choice.dataset.key = key;
    choice.replaceChildren(...values.map((value) => make("option", { value, text: value.slice(33) })));
    if (values.includes(chosen)) choice.value = chosen;
  }

  function buttons() {
    const groups = Object.entries(GROUPS).map(([name, title]) => {
      const shown = data.actions.filter((action) => action.group === name);
      const parts = shown.map((action) => {
        if (!action.chooses) return button(action);
        choice = make("select", { "aria-label": "checkpoint" });
        return make("div", { class: "choose" }, button(action), choice);
      });
      return make("div", { class: `group ${name}` }, make("h3", { text: title }), make("div", { class: "acts" }, ...parts));
    });
    return make("details", { class: "panel", id: "actions" }, make("summary", { text: "Break and repair" }), make("p", { class: "quiet", text: "Each button types the lines that it shows." }), ...groups);
  }

  // The lessons

  function lessons() {
    const words = make("p", { class: "step", "aria-live": "polite" });
    const doing = make("div", { class: "acts" });
    const back = make("button", { type: "button", text: "← back", onclick: () => turn(-1) });
    const next = make("button", { type: "button", text: "next →", onclick: () => turn(1) });
    const where = make("span", { class: "quiet number" });
    const pick = make("select", { "aria-label": "lesson", onchange: () => { at = 0; show(); } }, ...data.lessons.map((lesson, place) => make("option", { value: place, text: lesson.title })));
    let at = 0;
    const lesson = () => data.lessons[pick.value || 0];
    function turn(step) {
      at = Math.max(0, Math.min(lesson().steps.length - 1, at + step));
      show();
    }
    function show() {
      const step = lesson().steps[at];
      say(words, step.words);
      say(where, `step ${at + 1} of ${lesson().steps.length}`);
      back.disabled = at === 0;
      next.disabled = at === lesson().steps.length - 1;
      const action = data.actions.find((each) => each.name === step.action);
      doing.replaceChildren();
      if (action && action.chooses) doing.append(make("p", { class: "quiet", text: "Choose the checkpoint under Break and repair, then:" }));
      if (action) doing.append(button(action));
      else if (step.action) doing.append(make("p", { class: "quiet", text: `Type it in a shell: ${lesson().walkthrough} does the whole lesson. scripts/page.sh starts a page with a button for it.` }));
    }
    const panel = make("details", { class: "panel", id: "lessons" }, make("summary", { text: "Lessons, step by step" }), make("div", { class: "turn" }, pick, where, back, next), words, doing);
    show();
    return panel;
  }

  place.append(lessons());
  if (data.actions.length && token) place.append(buttons());
  else if (data.actions.length) place.append(make("p", { class: "quiet", text: "This address has no token, so nothing can be broken from here. Open the address that scripts/page.sh has printed." }));
  else place.append(make("p", { class: "quiet readonly", text: "This page only shows. scripts/page.sh starts one with buttons." }));
  place.append(said);
  offer();
})();
