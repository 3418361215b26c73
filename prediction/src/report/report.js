"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = ["#3b74c4", "#e08a2b", "#3f9e75", "#c8524d", "#8464b8", "#2aa3b5", "#b5892a", "#cf6aa1", "#6f8f3a", "#7c5a4a", "#4f6d8f", "#a85fb0"];
  const OTHER = "#b9c0cc";
  const place = (id) => document.getElementById(id);
  const tip = place("tip");
  let drawn = 0;

  // Colours go to the phases that take the most; the others are grey.
  const byTime = data.phases.slice().sort((a, b) => b.total - a.total || a.id - b.id);
  const phases = new Map(byTime.map((phase, i) => [phase.id, Object.assign(phase, { colour: COLOURS[i] || OTHER })]));
  const colour = (id) => (phases.get(id) || { colour: OTHER }).colour;

  function time(s) {
    const a = Math.abs(s);
    if (a === 0) return "0 s";
    const [value, unit] = a >= 1 ? [s, "s"] : a >= 1e-3 ? [s * 1e3, "ms"] : [s * 1e6, "us"];
    const digits = unit === "s" ? (a >= 100 ? 1 : 2) : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toFixed(digits) + " " + unit;
  }

  function ticks(low, high, most) {
    const rough = (high - low) / Math.max(most, 1);
    if (!(rough > 0)) return [low];
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    const first = Math.ceil(low / step), out = [];
    for (let i = first; i * step <= high + step * 1e-9 && out.length < 100; i++) out.push(i * step);
    return out;
  }

  function tickLabel(value, span) {
    const [scale, unit] = span >= 1 ? [1, "s"] : span >= 1e-3 ? [1e3, "ms"] : [1e6, "us"];
    const digits = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(Math.max(span, 1e-12) * scale / 6))));
    return (value * scale).toFixed(span * scale >= 30 ? 0 : digits) + " " + unit;
  }

  function svg(name, attributes, parent, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }

  function rectangle(parent, x, y, width, height, fill, says) {
    const node = svg("rect", { x, y, width: Math.max(width, 0.75), height, fill, rx: Math.min(2, width / 4) }, parent);
    hover(node, says);
    drawn += 1;
    return node;
  }

  function hover(node, says) {
    node.addEventListener("mousemove", (event) => show(event, says));
    node.addEventListener("mouseleave", hide);
  }

  function show(event, text) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = Math.max(4, y) + "px";
  }

  function hide() { tip.hidden = true; }

  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  const width = (node) => Math.max(node.clientWidth, 320);

  function axis(picture, low, high, x, y, height, total) {
    for (const value of ticks(low, high, total / 130)) {
      const at = x(value);
      svg("line", { x1: at, x2: at, y1: y - height, y2: y, stroke: "#e3e7ee" }, picture);
      svg("text", { x: at, y: y + 16, "text-anchor": "middle" }, picture, tickLabel(value, high - low));
    }
  }

  function drawAnswer(node) {
    const a = data.answer, total = width(node), left = 104, right = 96;
    const known = [a.pet_s, ...a.interval_s, ...a.run_interval_s, a.base_s].concat(a.aet_s === null ? [] : [a.aet_s]);
    let low = Math.min(...known), high = Math.max(...known);
    const air = (high - low || high || 1) * 0.08;
    low = Math.max(0, low - air); high += air;
    const x = (s) => left + (s - low) / (high - low) * (total - left - right);
    const rows = a.aet_s === null ? 2 : 3, picture = svg("svg", { height: rows * 34 + 28, role: "img" }, node);
    axis(picture, low, high, x, rows * 34 + 6, rows * 34, total);
    const label = (row, name, value) => {
      svg("text", { x: 0, y: row * 34 + 26, class: "strong" }, picture, name);
      svg("text", { x: x(value), y: row * 34 + 11, "text-anchor": "middle", class: "strong" }, picture, time(value));
    };
    const bar = (row, range, height, fill, says) =>
      rectangle(picture, x(range[0]), row * 34 + 22 - height / 2, x(range[1]) - x(range[0]), height, fill, says);
    label(0, "predicted", a.pet_s);
    const of = (range) => time(range[0]) + " to " + time(range[1]);
    bar(0, a.run_interval_s, 10, "#c9daf3", "another single run: " + of(a.run_interval_s));
    bar(0, a.interval_s, 10, "#7fa6de", "the mean of many runs: " + of(a.interval_s));
    bar(0, [a.pet_s, a.pet_s], 16, "#2457a6", "PET " + time(a.pet_s)).setAttribute("width", 3);
    label(1, "base", a.base_s);
    svg("circle", { cx: x(a.base_s), cy: 56, r: 5, fill: "#8a94a6" }, picture);
    if (a.aet_s !== null) {
      label(2, "true", a.aet_s);
      svg("circle", { cx: x(a.aet_s), cy: 90, r: 5, fill: "#c8524d" }, picture);
    }
  }

  function drawParts(node) {
    const total = width(node), picture = svg("svg", { height: 44, role: "img" }, node);
    const hatch = svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("defs", {}, picture));
    svg("rect", { width: 6, height: 6, fill: "#eef1f5" }, hatch);
    svg("rect", { width: 2, height: 6, fill: "#c3cad6" }, hatch);
    const parts = byTime.map((p) => [p.total, p.colour, "phase " + p.id + ": " + time(p.total) + "\n" + cut(p.structure, 300)])
      .concat(data.rest.map(([name, s]) => [s, "url(#hatch)", name + ": " + time(s)]))
      .filter(([s]) => s > 0);
    const sum = parts.reduce((all, [s]) => all + s, 0);
    let at = 0;
    for (const [s, fill, says] of parts) {
      const wide = s / sum * total;
      rectangle(picture, at, 0, Math.max(wide - 1, 0.5), 40, fill, says + "\n" + (s / sum * 100).toFixed(1) + " %");
      if (wide > 60) {
        const ink = fill.startsWith("url") ? "#1d2433" : "#fff";
        svg("text", { x: at + wide / 2, y: 25, "text-anchor": "middle", style: "fill:" + ink + ";font-weight:600;pointer-events:none" }, picture, (s / sum * 100).toFixed(1) + " %");
      }
      at += wide;
    }
    legend(node);
  }

  function legend(node) {
    const box = document.createElement("div");
    box.className = "legend";
    for (const phase of byTime.slice(0, COLOURS.length).filter((p) => p.total > 0)) {
      const entry = document.createElement("span"), swatch = document.createElement("i");
      swatch.className = "swatch";
      swatch.style.background = phase.colour;
      entry.append(swatch, "phase " + phase.id + " \u00b7 " + cut(phase.structure, 60));
      entry.addEventListener("mouseenter", () => light(phase.id));
      entry.addEventListener("mouseleave", () => light(null));
      box.appendChild(entry);
    }
    node.appendChild(box);
  }

  function drawBars(node) {
    const rows = byTime.filter((p) => p.target !== null).slice(0, 12), total = width(node), left = 104, right = 96;
    const most = Math.max(...rows.map((p) => Math.max(p.base, p.target)), 1e-12);
    const x = (s) => left + s / most * (total - left - right);
    const picture = svg("svg", { height: rows.length * 40 + 30, role: "img" }, node);
    axis(picture, 0, most, x, rows.length * 40 + 6, rows.length * 40, total);
    rows.forEach((phase, i) => {
      const y = i * 40 + 6, note = phase.measured ? "" : " (not measured)";
      svg("text", { x: 0, y: y + 18, class: "strong" }, picture, "phase " + phase.id);
      rectangle(picture, left, y, x(phase.base) - left, 12, "#c3cad6", "phase " + phase.id + " on the base: " + time(phase.base));
      svg("text", { x: x(phase.base) + 6, y: y + 10 }, picture, time(phase.base) + " base");
      rectangle(picture, left, y + 14, x(phase.target) - left, 12, phase.colour, "phase " + phase.id + " on the target" + note + ": " + time(phase.target));
      svg("text", { x: x(phase.target) + 6, y: y + 25, class: "strong" }, picture, time(phase.target) + note);
    });
  }

  let light = () => {};

  function drawTimeline(node) {
    const ranks = [...new Set(data.pieces.map((p) => p[0]))].sort((a, b) => a - b);
    const row = new Map(ranks.map((rank, i) => [rank, i]));
    const tall = ranks.length > 64 ? 7 : ranks.length > 24 ? 12 : ranks.length > 8 ? 18 : 30;
    const left = 64, foot = 24, height = ranks.length * tall + foot;
    const start = data.pieces.reduce((low, p) => Math.min(low, p[2]), Infinity);
    const end = data.pieces.reduce((high, p) => Math.max(high, p[3]), start);
    let view = [start, end > start ? end : start + 1], lit = null, from = null, count = 0;
    const canvas = document.createElement("canvas");
    canvas.style.height = height + "px";
    node.appendChild(canvas);
    const pen = canvas.getContext("2d");
    const x = (s) => left + (s - view[0]) / (view[1] - view[0]) * (width(canvas) - left - 8);
    const second = (px) => view[0] + (px - left) / (width(canvas) - left - 8) * (view[1] - view[0]);

    function draw(selection) {
      const sharp = devicePixelRatio || 1, total = width(canvas);
      // Whole pixels: the edges of narrow pieces would else let the paper through.
      const snap = (px) => Math.round(px * sharp) / sharp;
      canvas.width = total * sharp;
      canvas.height = height * sharp;
      pen.scale(sharp, sharp);
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      count = 0;
      for (const [rank, phase, a, b] of data.pieces) {
        if (b < view[0] || a > view[1]) continue;
        const x0 = Math.max(x(a), left), x1 = Math.min(x(b), total - 8), gap = x1 - x0 > 5 ? 1 : 0;
        pen.globalAlpha = lit === null || lit === phase ? 1 : 0.16;
        pen.fillStyle = colour(phase);
        const from = snap(x0), to = Math.max(snap(x1 - gap), from + 1 / sharp);
        pen.fillRect(from, row.get(rank) * tall, to - from, tall - (tall > 10 ? 3 : 1));
        count += 1;
      }
      pen.globalAlpha = 1;
      pen.fillStyle = "#5d687c";
      const each = Math.max(1, Math.ceil(14 / tall));
      ranks.forEach((rank, i) => { if (i % each === 0) pen.fillText("rank " + rank, 0, i * tall + tall / 2 - 1); });
      pen.textAlign = "center";
      for (const value of ticks(view[0], view[1], total / 130)) {
        pen.fillRect(x(value), ranks.length * tall, 1, 5);
        pen.fillText(tickLabel(value, view[1] - view[0]), Math.min(x(value), total - 26), height - 8);
      }
      pen.textAlign = "left";
      if (selection) {
        pen.fillStyle = "rgb(36 87 166 / 18%)";
        pen.fillRect(selection[0], 0, selection[1] - selection[0], ranks.length * tall);
      }
    }

    light = (phase) => {
      lit = phase;
      draw();
      for (const line of document.querySelectorAll("tr[data-phase]")) line.classList.toggle("on", Number(line.dataset.phase) === phase);
    };
    const px = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointerdown", (event) => { from = px(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (from !== null) return draw([from, px(event)]);
      const rank = ranks[Math.floor((event.clientY - canvas.getBoundingClientRect().top) / tall)], at = second(px(event));
      const piece = data.pieces.find((p) => p[0] === rank && p[2] <= at && at < p[3]);
      if (!piece) return hide();
      const phase = phases.get(piece[1]);
      show(event, "rank " + rank + ", phase " + piece[1] + "\n" + time(piece[3] - piece[2]) + " from " + time(piece[2]) + (phase ? "\n" + cut(phase.structure, 300) : ""));
    });
    canvas.addEventListener("pointerup", (event) => {
      const span = [second(Math.min(from, px(event))), second(Math.max(from, px(event)))];
      const chosen = span.map((s) => Math.min(Math.max(s, start), end));
      if (from !== null && Math.abs(from - px(event)) > 4 && chosen[1] > chosen[0]) view = chosen;
      from = null;
      draw();
    });
    canvas.addEventListener("pointerleave", hide);
    canvas.addEventListener("dblclick", () => { view = [start, end]; draw(); });
    addEventListener("resize", () => draw());
    draw();
    drawn += count;
    document.body.dataset.timeline = count;
  }

  for (const line of document.querySelectorAll("tr[data-phase]")) {
    const id = Number(line.dataset.phase);
    line.querySelector(".swatch").style.background = colour(id);
    line.addEventListener("mouseenter", () => light(id));
    line.addEventListener("mouseleave", () => light(null));
  }
  const pictures = { answer: drawAnswer, parts: drawParts, timeline: drawTimeline, bars: drawBars };
  for (const id in pictures) if (place(id)) pictures[id](place(id));
  document.body.dataset.drawn = drawn;
})();
