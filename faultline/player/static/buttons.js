"use strict";
// The actions of page/actions.py as buttons, each with the commands that it runs. One runs at a time, and what it did
// stands below the button that was pressed.
Faultline.buttons = (data, store, token) => {
  const { make, say, disable } = Faultline.dom;
  const said = make("div", { id: "said", role: "status", "aria-live": "polite", tabindex: "-1" });
  const choice = make("select", { "aria-label": "checkpoint", onchange: () => update() });
  const deleted = () => Boolean(choice.selectedOptions[0] && choice.selectedOptions[0].dataset.deleted);
  // What was pressed here, until its end: its label, and the time of the last event before it.
  let pressed = null;

  // What runs now, for whoever has pressed it: a command was told, and no end yet.
  function running() {
    const told = store.of("event").filter((item) => item.what === "command" || item.what === "done").pop();
    return Boolean(pressed) || Boolean(told && told.what === "command");
  }
  async function act(action, button) {
    if (running()) return;
    button.closest(".doing").append(said);
    if (action.chooses && (!choice.value || deleted())) {
      tell(choice.value ? `${choice.selectedOptions[0].textContent}: choose another checkpoint` : "No checkpoint is retained.");
      return;
    }
    const before = store.of("event").slice(-1)[0];
    pressed = { label: action.label, after: before ? before.at : 0 };
    tell(`${action.label} ...`);
    // A button that keeps the focus would be pressed again by the next Space.
    said.focus({ preventScroll: true });
    update();
    const body = { action: action.name, ...(action.chooses ? { checkpoint: choice.value } : {}) };
    try {
      const answer = await fetch("/act", { method: "POST", headers: { "content-type": "application/json", "x-faultline-token": token }, body: JSON.stringify(body) });
      const text = (await answer.text()).trim();
      if (!answer.ok) refused(text);
    } catch {
      refused("The page's server does not answer.");
    }
  }
  function refused(text) {
    pressed = null;
    tell(text, "failed");
    update();
  }
  // A sentence, and below it what was run, why it failed, and the verdict.
  function tell(sentence, kind = "", events = [], verdict = null) {
    const key = [sentence, ...events.map((item) => item.at)].join();
    if (said.dataset.key === key) return;
    said.dataset.key = key;
    said.replaceChildren(
      make("p", { class: `end ${kind}`, text: sentence }),
      make("ul", {}, ...events.map((item) => make("li", {}, make(item.what === "command" ? "code" : "span", { text: item.text })))),
      ...(verdict ? Faultline.verdict.parts(verdict) : []),
    );
  }
  function follow() {
    const events = store.of("event").filter((item) => item.at > pressed.after);
    const shown = events.filter((item) => item.what === "command" || item.what === "note");
    const end = events.find((item) => item.what === "done" && item.text.endsWith(`: ${pressed.label}`));
    if (!end) {
      tell(`${pressed.label} ...`, "", shown);
      return;
    }
    const verdict = store.of("verdict").filter((item) => item.at > pressed.after).pop();
    tell(end.text, end.text.split(":")[0], shown, verdict);
    pressed = null;
  }

  // After each message: what has ended, what can be chosen, what can be pressed.
  function update() {
    if (pressed) follow();
    offer();
    const busy = running();
    for (const each of document.querySelectorAll("[data-action]")) {
      disable(each, busy);
      const lines = data.actions.find((action) => action.name === each.dataset.action).lines;
      say(each.querySelector("code"), lines.join("\n").replace("{checkpoint}", choice.value || "CHECKPOINT"));
    }
  }
  // The newest first. The choice stays: a checkpoint that went stays as well, and is refused.
  function offer() {
    const list = (store.of("retained").slice(-1)[0] || { checkpoints: [] }).checkpoints;
    const values = list.map((each) => `${each.job_id}/${each.name}`).reverse();
    const key = values.join();
    if (choice.dataset.key === key) return;
    const chosen = choice.value;
    const gone = chosen && !values.includes(chosen);
    const name = (value) => `${value.split("/")[1]} of job ${value.slice(0, 8)}`;
    choice.dataset.key = key;
    choice.replaceChildren(
      ...(gone ? [make("option", { value: chosen, "data-deleted": "yes", text: `${chosen.split("/")[1]} (deleted)` })] : []),
      ...values.map((value) => make("option", { value, text: name(value) })),
    );
    if (chosen) choice.value = chosen;
  }

  const button = (action) =>
    make("button", { type: "button", class: `act ${action.kind}`, "data-action": action.name, onclick: (event) => act(action, event.currentTarget) }, make("span", { text: action.label }), make("code", { text: action.lines.join("\n") }));
  function panel() {
    const groups = [...new Set(data.actions.map((action) => action.group))].map((title) => {
      const shown = data.actions.filter((action) => action.group === title);
      const cells = shown.map((action) => make("div", { class: `doing${action.chooses ? " choose" : ""}` }, button(action), ...(action.chooses ? [choice] : [])));
      return make("div", { class: "group" }, make("h3", { text: title }), make("div", { class: "acts" }, ...cells));
    });
    return make("details", { class: "panel", id: "actions" }, make("summary", { text: "Break and repair" }), make("p", { class: "quiet", text: "Each button runs the commands that it shows. What it did stands below it." }), ...groups);
  }
  return { button, panel, update, said };
};
