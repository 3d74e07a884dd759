"use strict";
// The actions of page/actions.py as buttons, each with the commands that it runs. One runs at a time.
Faultline.buttons = (data, store, token) => {
  const { make, say } = Faultline.dom;
  const GROUPS = { break: "Break", repair: "Repair", judge: "Load, and judge", clean: "Begin again" };
  const said = make("p", { id: "said", role: "status", "aria-live": "polite", tabindex: "-1" });
  const choice = make("select", { "aria-label": "checkpoint", onchange: () => update() });
  const deleted = () => Boolean(choice.selectedOptions[0] && choice.selectedOptions[0].dataset.deleted);
  // The label of what was pressed here; its end is told by an event.
  let pressed = null;

  // What runs now, for whoever has pressed it: a command was told, and no end yet.
  function running() {
    const told = store.of("event").filter((item) => item.what === "command" || item.what === "done").pop();
    return Boolean(pressed) || Boolean(told && told.what === "command");
  }
  async function act(action) {
    if (running()) return;
    if (action.chooses && (!choice.value || deleted())) {
      say(said, choice.value ? `${choice.selectedOptions[0].textContent}: choose another checkpoint` : "No checkpoint is retained.");
      return;
    }
    pressed = { label: action.label, after: end() ? end().at : 0 };
    say(said, `${action.label} ...`);
    // A button that keeps the focus would be pressed again by the next Space.
    said.focus({ preventScroll: true });
    update();
    const body = { action: action.name, ...(action.chooses ? { checkpoint: choice.value } : {}) };
    try {
      const answer = await fetch("/act", { method: "POST", headers: { "content-type": "application/json", "x-faultline-token": token }, body: JSON.stringify(body) });
      const text = (await answer.text()).trim();
      if (!answer.ok) failed(text);
    } catch {
      failed("The page's server does not answer.");
    }
  }
  function failed(text) {
    pressed = null;
    say(said, text);
    update();
  }
  const end = () => store.of("event").filter((item) => item.what === "done").pop();

  // After each message: what has ended, what can be chosen, what can be pressed.
  function update() {
    const last = end();
    if (pressed && last && last.at > pressed.after && last.text.endsWith(`: ${pressed.label}`)) {
      pressed = null;
      say(said, last.text);
    }
    offer();
    const busy = running();
    for (const each of document.querySelectorAll("[data-action]")) {
      each.disabled = busy;
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
    make("button", { type: "button", class: "act", "data-action": action.name, onclick: () => act(action) }, make("span", { text: action.label }), make("code", { text: action.lines.join("\n") }));
  function panel() {
    const groups = Object.entries(GROUPS).map(([name, title]) => {
      const shown = data.actions.filter((action) => action.group === name);
      const parts = shown.map((action) => (action.chooses ? make("div", { class: "choose" }, button(action), choice) : button(action)));
      return make("div", { class: `group ${name}` }, make("h3", { text: title }), make("div", { class: "acts" }, ...parts));
    });
    return make("details", { class: "panel", id: "actions" }, make("summary", { text: "Break and repair" }), make("p", { class: "quiet", text: "Each button runs the commands that it shows." }), ...groups);
  }
  return { button, panel, update, said };
};
