"use strict";
// Small helpers: elements, numbers, times. Every script adds to the one name `Faultline`.
const Faultline = {};
Faultline.dom = (() => {
  const SVG = document.getElementById("defs").namespaceURI;
  const NUMBER = new Intl.NumberFormat("en-US");

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }
  const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const by = (id) => document.getElementById(id);

  // Half a pixel of the screen is the smallest step: a mark that moves less is not painted again.
  function snapped(place) {
    const steps = 2 * (devicePixelRatio || 1);
    return Math.round(place * steps) / steps;
  }
  // Text is only written when it is another one: screen readers speak each change of a live region.
  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
  // A line for each item, in their order. A line stays the same element while its item is there, and as long as it has
  // the focus: whoever moves by keyboard stays where they are.
  function lines(parent, items, key, fresh) {
    const keys = items.map(key);
    for (const line of [...parent.children]) {
      if (!keys.includes(line.dataset.key) && !line.contains(document.activeElement)) line.remove();
    }
    const there = new Map([...parent.children].map((line) => [line.dataset.key, line]));
    let next = parent.firstElementChild;
    return items.map((item, place) => {
      let line = there.get(keys[place]);
      if (!line) {
        line = fresh(item);
        line.dataset.key = keys[place];
        parent.insertBefore(line, next);
      }
      next = line.nextElementSibling;
      return line;
    });
  }
  // The button that has the focus keeps it, and looks disabled; what it does must be refused.
  function disable(button, is) {
    button.disabled = is && button !== document.activeElement;
    button.setAttribute("aria-disabled", String(is));
  }
  const number = (value) => NUMBER.format(value);
  function size(bytes) {
    if (bytes === null || bytes === undefined) return "";
    return bytes < 1024 ? `${bytes} B` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
  }
  const took = (ms) => (ms === null || ms === undefined ? "" : ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);
  const clock = (at) => `${new Date(at * 1000).toISOString().slice(11, 19)} UTC`;
  const sum = (offsets) => Object.values(offsets || {}).reduce((total, offset) => total + offset, 0);
  const many = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const ago = (seconds) => (seconds < 120 ? `${Math.max(0, seconds).toFixed(0)} s ago` : `${(seconds / 60).toFixed(0)} min ago`);
  // A canvas takes no variables: the browser resolves them on an element.
  const probe = document.getElementById("defs");
  function colour(name) {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  }
  return { make, draw, by, say, snapped, lines, disable, number, size, took, clock, sum, many, ago, still, colour };
})();
