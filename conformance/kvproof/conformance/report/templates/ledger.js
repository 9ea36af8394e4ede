"use strict";
// Each stepper replays the facts of its film from the opening on, so any event can be jumped to.
(() => {
  const docs = JSON.parse(document.getElementById("fields").textContent);
  const LANES = ["requests", "blocks", "jobs", "tier"];

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== undefined && value !== false) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // --- facts ---

  const key = (field, args) => field + "\u0000" + args.join("\u0000");

  function apply(facts, changes) {
    for (const [op, field, args, value] of changes) {
      if (op === "-") facts.delete(key(field, args));
      else facts.set(key(field, args), { field, args, value });
    }
  }

  function factsAt(film, position) {
    const facts = new Map();
    apply(facts, film.opening);
    for (let i = 0; i <= position; i++) apply(facts, film.frames[i].changes);
    const byField = {};
    for (const fact of facts.values()) (byField[fact.field] ||= []).push(fact);
    return (field) => byField[field] || [];
  }

  // --- the board: blocks, slots and jobs as the facts have them ---

  const numbered = (a, b) => a.name.localeCompare(b.name, "en", { numeric: true });

  function cell(item, touched) {
    const node = el("div", { class: "cell" + (item.idle ? " idle" : "") }, el("b", {}, item.name));
    if (item.tone !== undefined) node.style.setProperty("--tone", `var(--h${item.tone % 6})`);
    for (const [text, kind] of item.lines) node.append(el("span", { class: kind }, text));
    if (item.mentions.some((name) => touched.has(name))) node.classList.add("touched");
    return node;
  }

  function blocks(facts, tones) {
    return facts("current").map(({ args: [block], value: lease }) => {
      const holders = facts("holds").filter((f) => f.args[1] === lease).map((f) => f.args[0]);
      const lines = [[lease.split(" of ")[0], ""], [holders.join(", ") || "given up", ""]];
      for (const f of facts("reading").filter((f) => f.args[0] === block)) {
        const earlier = f.args[3] === lease ? "" : ` (${f.args[3].split(" of ")[0]})`;
        lines.push([`${f.args[2]} may read${earlier}`, earlier ? "hurt" : "tag"]);
      }
      for (const f of facts("incoming").filter((f) => f.args[0] === lease)) {
        lines.push([`filled by ${f.args[1]}`, "tag"]);
      }
      const tone = holders.length ? tones(holders[0]) : undefined;
      return { name: block, lines, tone, idle: !holders.length, mentions: [block, lease] };
    });
  }

  function slots(facts) {
    return facts("occupant").map(({ args: [slot], value: residency }) => {
      const has = (field) => facts(field).some((f) => f.args[0] === residency);
      const lines = [[residency.split(" in ")[0], ""]];
      if (has("storing")) lines.push(["being stored", "tag"]);
      if (has("ready")) lines.push(["readable", "fine"]);
      for (const f of facts("pinned").filter((f) => f.args[0] === residency)) {
        lines.push([`pinned by ${f.args[1]}`, "tag"]);
      }
      return { name: slot, lines, mentions: [slot, residency] };
    });
  }

  function jobs(facts) {
    const row = (field, job, worker) =>
      facts(field).some((f) => f.args[0] === job && f.args[1] === worker);
    const open = new Map();
    for (const f of [...facts("pending"), ...facts("unreported")]) {
      if (!open.has(f.args[0])) open.set(f.args[0], new Set());
      open.get(f.args[0]).add(f.args[1]);
    }
    return [...open].map(([job, workers]) => {
      const lines = [...workers].sort().map((worker) => {
        if (row("failed", job, worker)) return [`${worker}: failed`, "hurt"];
        if (!row("pending", job, worker)) return [`${worker}: ended, not reported`, "fine"];
        return row("submitted", job, worker)
          ? [`${worker}: copying`, "tag"] : [`${worker}: not submitted`, ""];
      });
      return { name: job, lines, mentions: [job] };
    });
  }

  // --- one stepper ---

  function stepper(root) {
    const film = JSON.parse(document.getElementById(root.dataset.film).textContent);
    const breaks = root.dataset.breaks;
    const last = film.frames.length - 1;
    if (last < 0) return;
    let position = last;
    const seen = [];
    const tones = (request) => {
      if (!seen.includes(request)) seen.push(request);
      return seen.indexOf(request);
    };

    const button = (text, label, move) => {
      const node = el("button", { type: "button", "aria-label": label, title: label }, text);
      node.addEventListener("click", move);
      return node;
    };
    const toStep = (direction) => {
      const here = film.frames[position].step;
      let i = position;
      while (i + direction >= 0 && i + direction <= last && film.frames[i].step === here) i += direction;
      // Backwards: on to the beginning of that step.
      if (direction < 0) while (i > 0 && film.frames[i - 1].step === film.frames[i].step) i--;
      go(i);
    };
    const buttons = [
      button("«", "first event", () => go(0)),
      button("‹", "back one event", () => go(position - 1)),
      button("›", "on one event", () => go(position + 1)),
      button("»", "last event", () => go(last)),
    ];
    const slider = el("input", { type: "range", min: 0, max: last, value: last, "aria-label": "event" });
    slider.addEventListener("input", () => go(Number(slider.value)));
    const why = [...root.closest("article").querySelectorAll(".facts")].map((t) => t.cloneNode(true));
    const told = el("output", { "aria-live": "polite" });
    const body = el("tbody");
    // A text begins in its lane and may run on over the lanes to its right, which are empty.
    const lanes = ({ lane, text }) => {
      const at = LANES.indexOf(lane);
      return [...LANES.slice(0, at).map(() => el("td")), el("td", { colspan: LANES.length - at }, text)];
    };
    let before = null;
    const rows = film.frames.map((frame, i) => {
      const row = el("tr", { class: frame.step !== before ? "first" : undefined },
        el("td", {}, frame.step !== before ? String(frame.step) : ""),
        ...lanes(frame));
      before = frame.step;
      if (i === last && breaks) row.classList.add("end");
      row.addEventListener("click", () => go(i));
      body.append(row);
      return row;
    });
    const lines = el("div", { class: "lines" }, el("table", {}, el("thead", {}, el("tr", {},
      ...["step", ...LANES].map((name) => el("th", { scope: "col" }, name)))), body));
    const now = el("div", { class: "now" });
    const board = el("div", { class: "board" });
    root.replaceChildren(el("div", { class: "bar" }, ...buttons.slice(0, 2), slider, ...buttons.slice(2), told),
      el("div", { class: "scene" }, lines, now), board);
    root.tabIndex = 0;
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "time line of the history; arrow keys step");

    root.addEventListener("keydown", (event) => {
      const keys = {
        ArrowLeft: () => go(position - 1), ArrowUp: () => go(position - 1),
        ArrowRight: () => go(position + 1), ArrowDown: () => go(position + 1),
        PageUp: () => toStep(-1), PageDown: () => toStep(1),
        Home: () => go(0), End: () => go(last),
      };
      if (!keys[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });

    function fact([op, field, args, value, old]) {
      const sign = { "+": "plus", "-": "minus" }[op] || "set";
      const at = args.length ? `(${args.join(", ")})` : "";
      const is = value === "" ? "" : old === "" ? ` = ${value}` : ` = ${old} → ${value}`;
      return el("li", { class: sign }, el("span", { class: "op" }, op === "-" ? "−" : op),
        el("abbr", { title: docs[field] }, field), at + is);
    }

    function list(title, items, leftOut) {
      if (!items.length) return [];
      const more = leftOut ? [el("p", { class: "where" }, `… and ${leftOut} more, left out here`)] : [];
      return [el("h4", {}, title), el("ul", {}, ...items), ...more];
    }

    function show() {
      const frame = film.frames[position];
      const broken = position === last && breaks;
      now.replaceChildren(
        el("p", { class: "told" }, frame.text),
        el("p", { class: "where" }, `event ${frame.index}, step ${frame.step}, ` +
          (frame.rank < 0 ? "scheduler side" : `rank ${frame.rank}`) + `, ${frame.kind}`),
        ...(broken ? [el("p", { class: "stamp" }, `${breaks} breaks here`), ...why] : []),
        ...list("Moves of the reference", frame.moves.map((move, i) =>
          el("li", { class: broken && i === frame.moves.length - 1 ? "stop" : undefined }, move)),
          frame.moves_left_out),
        ...list("Facts that changed", frame.changes.map(fact), frame.changes_left_out),
        ...(frame.changes.length ? [] : [el("h4", {}, "Facts that changed"), el("p", { class: "none" }, "none")]));
      const facts = factsAt(film, position);
      const touched = new Set(frame.changes.flatMap(([, , args, value]) => [...args, value]));
      const panels = [
        ["GPU blocks handed out so far", blocks(facts, tones)],
        ["Slots of the tier", slots(facts)],
        ["Jobs in flight", jobs(facts)],
      ];
      board.replaceChildren(...panels.map(([title, items]) => el("section", {}, el("h4", {}, title),
        items.length ? el("div", { class: "cells" }, ...items.sort(numbered).map((i) => cell(i, touched)))
          : el("p", { class: "none" }, "none"))));
    }

    function go(wanted) {
      position = Math.min(last, Math.max(0, wanted));
      const frame = film.frames[position];
      rows.forEach((row, i) => {
        row.classList.toggle("at", i === position);
        row.classList.toggle("later", i > position);
      });
      slider.value = position;
      told.textContent = `event ${frame.index} of ${film.frames[last].index}, step ${frame.step}`;
      buttons[0].disabled = buttons[1].disabled = position === 0;
      buttons[2].disabled = buttons[3].disabled = position === last;
      const row = rows[position];
      const top = row.offsetTop - 40;
      if (top < lines.scrollTop) lines.scrollTop = top;
      const bottom = row.offsetTop + row.offsetHeight + 8;
      if (bottom > lines.scrollTop + lines.clientHeight) lines.scrollTop = bottom - lines.clientHeight;
      show();
    }
    // Colours in the order of appearance, whichever event is looked at first.
    for (const [op, field, args] of [film.opening, ...film.frames.map((f) => f.changes)].flat()) {
      if (op === "+" && field === "holds") tones(args[0]);
    }
    go(last);
  }

  document.querySelectorAll(".stepper").forEach(stepper);
  window.addEventListener("beforeprint", () =>
    document.querySelectorAll("details").forEach((details) => { details.open = true; }));
})();
