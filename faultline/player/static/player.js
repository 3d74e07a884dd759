"use strict";
// The moment that is shown: it runs, stands still, or is chosen.
Faultline.Player = (() => {
  const { make, by, say } = Faultline.dom;
  const SPEEDS = [1, 2, 4, 8];
  const STEP = 1000;
  const BEHIND_SECONDS = 0.7;
  const JUMP_SECONDS = 5;

  function Player(store, live, shown) {
    Object.assign(this, { store, live, shown, playing: false, speed: 1, following: Boolean(live), last: 0 });
    this.at = live ? Date.now() / 1000 : store.begin;
    by("scrub").addEventListener("input", (event) => {
      const { begin, end } = this.range();
      this.seek(begin + (event.target.value / STEP) * (end - begin), true);
    });
    by("play").addEventListener("click", () => this.toggle());
    document.addEventListener("keydown", (event) => this.key(event));
    by("speeds").replaceChildren(
      ...(live ? [] : SPEEDS.map((speed) => make("button", { type: "button", text: `${speed}×`, "aria-pressed": "false", onclick: () => this.pace(speed) }))),
    );
    this.pace(live ? 1 : 2);
  }
  Player.prototype.range = function () {
    return { begin: this.store.begin, end: this.live ? this.now() : this.store.end };
  };
  // A little behind the newest sample, so that marks move between two of them.
  Player.prototype.now = function () {
    const found = Math.max(this.store.begin, Date.now() / 1000 + this.live.skew - BEHIND_SECONDS);
    // The answers of the server take longer or shorter: time does not go back for that.
    if (!(this.last - found < JUMP_SECONDS && this.last > found)) this.last = found;
    return this.last;
  };
  Player.prototype.pace = function (speed) {
    this.speed = speed;
    for (const button of by("speeds").children) button.setAttribute("aria-pressed", String(button.textContent === `${speed}×`));
  };
  Player.prototype.toggle = function () {
    const { end } = this.range();
    if (this.live) {
      this.following = !this.following;
      this.playing = false;
    } else {
      if (!this.playing && this.at >= end - 0.05) this.at = this.store.begin;
      this.playing = !this.playing;
    }
    this.draw();
  };
  Player.prototype.seek = function (at, stop) {
    const { begin, end } = this.range();
    this.at = Math.max(begin, Math.min(end, at));
    if (this.live) this.following = false;
    if (stop) this.playing = false;
    this.draw();
  };
  Player.prototype.key = function (event) {
    const inside = event.target.closest("input[type=text], textarea, select, dialog[open], pre");
    if (inside || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    if (event.key === " " && !event.target.closest("button, summary, a")) this.toggle();
    else if (event.key === "ArrowRight") this.seek(this.at + step, true);
    else if (event.key === "ArrowLeft") this.seek(this.at - step, true);
    else if (event.key === "Home" && event.target === document.body) this.seek(this.range().begin, true);
    else if (event.key === "End" && event.target === document.body) this.seek(this.range().end, true);
    else if (event.key.toLowerCase() === "f") this.fault();
    else return;
    event.preventDefault();
  };
  Player.prototype.fault = function () {
    const found = this.store.of("event").filter((item) => item.what === "phase" && item.text === "break").pop();
    if (found) this.seek(found.at - 3, false);
  };
  Player.prototype.start = function () {
    let last = performance.now();
    const frame = (now) => {
      const seconds = Math.min(0.5, (now - last) / 1000);
      last = now;
      if (this.live && this.following) {
        this.at = this.now();
        this.draw();
      } else if (this.playing) {
        this.at = Math.min(this.store.end, this.at + seconds * this.speed);
        if (this.at >= this.store.end) this.playing = false;
        this.draw();
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    this.draw();
  };
  Player.prototype.draw = function () {
    const { begin, end } = this.range();
    const running = this.live ? this.following : this.playing;
    const button = by("play");
    say(button, running ? "❚❚ pause" : this.live ? "▶ live" : "▶ play");
    by("scrub").value = end > begin ? Math.round(((this.at - begin) / (end - begin)) * STEP) : 0;
    say(by("seconds"), `${(this.at - begin).toFixed(1)} s of ${(end - begin).toFixed(0)} s`);
    this.shown(this.at);
  };
  return Player;
})();
