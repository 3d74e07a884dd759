"use strict";
// The guided mode: lessons in steps, each with its words and, where it has one, its button.
Faultline.lessons = (data, button, update) => {
  const { make, say, disable } = Faultline.dom;
  const words = make("p", { class: "step", "aria-live": "polite" });
  const doing = make("div", { class: "acts" });
  const back = make("button", { type: "button", text: "← back", onclick: () => turn(-1) });
  const next = make("button", { type: "button", class: "next", text: "next →", onclick: () => turn(1) });
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
    disable(back, at === 0);
    disable(next, at === lesson().steps.length - 1);
    const action = data.actions.find((each) => each.name === step.action);
    doing.replaceChildren();
    if (action && action.chooses) doing.append(make("p", { class: "quiet", text: "Choose the checkpoint under Break and repair, then:" }));
    if (action) doing.append(button(action));
    else if (step.action) doing.append(make("p", { class: "quiet", text: `In a shell, ${lesson().walkthrough} does the whole lesson. ${data.actions.length ? "This stack cannot have it, so there is no button for it." : "Run scripts/page.sh for a page with a button for it."}` }));
    update();
  }
  const panel = make("details", { class: "panel", id: "lessons" }, make("summary", { text: "Lessons, step by step" }), make("div", { class: "turn" }, pick, where, back, next), words, make("div", { class: "doing" }, doing));
  return { panel, show };
};
