"use strict";
// A running stack: what comes from the server, what is kept in a file, and the panels that only a live page has.
(() => {
  const { make, by, say } = Faultline.dom;
  const { data, store, live, strips, panels } = Faultline.page;
  const AGAIN_MS = 2000;

  // The token comes after # in the address, and leaves it at once: nobody reads it from a projector.
  const token = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("token") || "";
  if (token) sessionStorage.setItem("token", token);
  if (location.hash) history.replaceState(null, "", location.pathname);

  const place = by("live");
  const buttons = Faultline.buttons(data, store, token);
  const lessons = Faultline.lessons(token ? data : { ...data, actions: [] }, buttons.button, buttons.update);
  place.append(lessons.panel);
  if (data.actions.length && token) place.append(buttons.panel());
  else if (data.actions.length) place.append(make("p", { class: "quiet", text: "This address has no token, so nothing can be broken from here. Open the address that scripts/page.sh has printed." }));
  else place.append(make("p", { class: "quiet readonly", text: "This page is read-only. Run scripts/page.sh for a page with buttons." }));
  place.append(buttons.said);
  lessons.show();
  document.body.classList.remove("loading");

  // What comes

  function message(event) {
    const found = JSON.parse(event.data);
    live.skew = found.now - Date.now() / 1000;
    live.lost = false;
    live.full = 0;
    return found.items || [];
  }
  function take(items) {
    for (const item of items) store.add(item);
    buttons.update();
  }
  function connect() {
    const source = new EventSource("/events");
    let full = 0;
    source.addEventListener("all", (event) => {
      const items = message(event);
      // Another stack, or the same one from the beginning.
      store.kinds = {};
      strips.forget();
      take(items);
    });
    for (const name of ["more", "tick"]) source.addEventListener(name, (event) => take(message(event)));
    source.addEventListener("full", (event) => {
      live.full = full = JSON.parse(event.data).most;
    });
    source.addEventListener("error", () => {
      // After `full` the server ends the stream.
      live.full = full;
      full = 0;
      live.lost = true;
      // The browser tries again by itself, but not after an answer that is no stream.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_MS);
    });
  }
  connect();

  // What is kept

  by("tools").prepend(make("a", { class: "button", href: "/saved", download: "", text: "save as a file" }));
  live.open = ({ job, name, at }) => {
    const list = (store.of("retained").slice(-1)[0] || { checkpoints: [] }).checkpoints;
    if (!list.some((each) => each.job_id === job && each.name === name)) {
      const newest = Math.max(0, ...list.map((each) => each.at / 1000));
      panels.show(name, at > newest ? "The inspector has not read it yet." : "This checkpoint is not retained any more.");
      return;
    }
    panels.show(name, "The inspector opens it ...");
    fetch(`/checkpoint/${job}/${name}`)
      .then((answer) => answer.text())
      .then((text) => panels.show(name, text), () => panels.show(name, "The page's server does not answer."));
  };
})();
