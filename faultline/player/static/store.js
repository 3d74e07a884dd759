"use strict";
// What is known, in the order of time: items of player/items.py by their kind.
Faultline.store = (() => {
  const KEPT_SECONDS = 1800;
  const FIRST_SECONDS = 2;
  // Kinds that may be older than all that was sampled, or come without a sample.
  const UNSAMPLED = ["done", "event"];

  // A recorded run keeps everything.
  function Store(fixed) {
    this.fixed = fixed;
    this.kinds = {};
    this.version = 0;
  }
  Store.prototype.of = function (kind) {
    return this.kinds[kind] || [];
  };
  // Of each source and engine the last item that is too old stays: it is still true.
  function kept(list, old) {
    if (list.length < 3 || list[1].at >= old) return list;
    const last = new Map(list.filter((item) => item.at < old).map((item) => [`${item.source}/${item.engine}`, item]));
    return list.filter((item) => item.at >= old || last.get(`${item.source}/${item.engine}`) === item);
  }
  Store.prototype.add = function (item) {
    const list = (this.kinds[item.kind] = this.kinds[item.kind] || []);
    let place = list.length;
    while (place > 0 && list[place - 1].at > item.at) place -= 1;
    list.splice(place, 0, item);
    if (!this.fixed) this.kinds[item.kind] = kept(list, this.end - KEPT_SECONDS);
    this.version += 1;
  };
  // The place of the newest item that is not later than `at`; -1 when there is none.
  function newest(list, at) {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle].at <= at) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
  Store.prototype.at = function (kind, at) {
    const list = this.of(kind);
    const place = newest(list, at);
    return place < 0 ? null : list[place];
  };
  Store.prototype.until = function (kind, at) {
    const list = this.of(kind);
    return list.slice(0, newest(list, at) + 1);
  };
  Store.prototype.next = function (kind, at) {
    const list = this.of(kind);
    return list[newest(list, at) + 1] || null;
  };
  // The first sample: a checkpoint that was complete before it is known, and its moment is not shown.
  Object.defineProperty(Store.prototype, "begin", {
    get() {
      const kinds = Object.keys(this.kinds);
      if (!kinds.length) return Date.now() / 1000;
      const sampled = kinds.filter((kind) => !UNSAMPLED.includes(kind));
      let first = Math.min(...(sampled.length ? sampled : kinds).map((kind) => this.of(kind)[0].at));
      // All sources are sampled at once, and the log draws the most.
      if (this.of("log").length) first = Math.min(this.of("log")[0].at, first + FIRST_SECONDS);
      return this.fixed ? first : Math.max(first, this.end - KEPT_SECONDS);
    },
  });
  Object.defineProperty(Store.prototype, "end", {
    get() {
      const lists = Object.values(this.kinds);
      return lists.length ? Math.max(...lists.map((list) => list[list.length - 1].at)) : Date.now() / 1000;
    },
  });
  // The last word of a source at a moment: its item, or why there is none.
  Store.prototype.answer = function (kind, source, at) {
    const item = this.at(kind, at);
    const silence = this.until("unknown", at).filter((each) => each.source === source).pop();
    return { item, silent: silence && (!item || silence.at > item.at) ? silence.text : "" };
  };
  return Store;
})();
