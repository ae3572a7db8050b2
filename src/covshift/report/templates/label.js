"use strict";
(() => {
  const token = new URLSearchParams(location.search).get("token") || "";
  const at = (id) => document.getElementById(id);
  let state = null;
  let busy = false;

  async function ask(path, body) {
    if (busy) return;
    busy = true;
    mark();
    try {
      const options = { headers: { "X-Covshift-Token": token }, cache: "no-store" };
      if (body !== undefined) {
        options.method = "POST";
        options.headers["Content-Type"] = "application/json";
        options.body = JSON.stringify(body);
      }
      const answer = await fetch(path, options);
      if (!answer.ok) throw new Error(await answer.text());
      state = await answer.json();
      at("problem").hidden = true;
      busy = false;
      show();
    } catch (error) {
      const lost = error instanceof TypeError;
      at("problem").textContent = lost
        ? "The server does not answer. Start covshift label again and open the address that it prints; labels given so far are in the file."
        : error.message;
      at("problem").hidden = false;
    } finally {
      busy = false;
      mark();
    }
  }

  function mark() {
    for (const button of document.querySelectorAll("button")) button.disabled = busy;
  }

  function show() {
    const row = state.row;
    at("progress").textContent = `${state.given} of ${state.total} rows labeled` +
      (state.skipped ? `, ${state.skipped} skipped` : "");
    at("done").setAttribute("width", String((100 * state.given) / state.total));
    at("row").hidden = row === null;
    at("finished").hidden = row !== null;
    at("file").textContent = state.file;
    at("finished").querySelector("h2").textContent = state.skipped
      ? `No row is left; ${state.skipped} were skipped and come back at the next start.`
      : "All rows are labeled.";
    if (row !== null) {
      at("question").textContent = `${state.label}: which one?`;
      at("number").textContent = `Row ${row.number} of the table`;
      at("classes").replaceChildren(...state.classes.map(classButton));
      at("cells").replaceChildren(...row.cells.map(([name, value]) => {
        const line = document.createElement("tr");
        const head = document.createElement("th");
        const cell = document.createElement("td");
        head.scope = "row";
        head.textContent = name;
        cell.textContent = value;
        line.append(head, cell);
        return line;
      }));
    }
    showScore();
  }

  function classButton(name, number) {
    const button = document.createElement("button");
    const row = state.row;
    button.type = "button";
    button.dataset.number = String(number);
    const parts = [number < 9 ? part("kbd", String(number + 1)) : "", part("span", name, "name")];
    const says = row.predicted === name ? "model's choice" : "";
    const share = row.probabilities ? `${Math.round(100 * row.probabilities[number])} %` : "";
    parts.push(part("span", [says, share].filter(Boolean).join(" · "), "share"));
    if (says) button.className = "predicted";
    button.append(...parts);
    button.addEventListener("click", () => give(number));
    return button;
  }

  function part(tag, text, kind) {
    const element = document.createElement(tag);
    element.textContent = text;
    if (kind) element.className = kind;
    return element;
  }

  function showScore() {
    const last = state.trail[state.trail.length - 1];
    const range = (one) => `${one.value.toFixed(3)} (${one.low.toFixed(3)} to ${one.high.toFixed(3)})`;
    at("expected").textContent = last.expected
      ? `Expected ${state.objective}: ${range(last.expected)}, 90 % interval. On held-out training rows: ${last.expected.reference.toFixed(3)}.`
      : `The score cannot be estimated without labels. ${last.no_estimate || ""}`;
    at("observed").textContent = last.observed
      ? `The model is right on ${last.right} of ${last.labels} labeled rows: ${state.objective} ${range(last.observed)}, 95 % interval.`
      : "No row is labeled yet.";
    drawTrail();
  }

  function drawTrail() {
    const points = state.trail.map((one) => [one.labels, one.expected || one.observed]).filter(([, one]) => one);
    const most = Math.max(state.total, 1);
    const x = (n) => 30 + (360 * n) / most;
    const y = (v) => 8 + 90 * (1 - v);
    const shapes = [shape("line", { class: "axis", x1: 30, x2: 390, y1: 98, y2: 98 })];
    for (const v of [0, 0.5, 1]) {
      shapes.push(shape("line", { class: "axis", x1: 30, x2: 390, y1: y(v), y2: y(v) }));
      shapes.push(shape("text", { x: 2, y: y(v) + 4 }, v.toFixed(1)));
    }
    shapes.push(shape("text", { x: 390, y: 114, "text-anchor": "end" }, `${most} labels`));
    for (const [n, one] of points) {
      shapes.push(shape("line", { class: "range", x1: x(n), x2: x(n), y1: y(one.low), y2: y(one.high) }));
      shapes.push(shape("circle", { class: "mean", cx: x(n), cy: y(one.value), r: 3 }));
    }
    at("trail").replaceChildren(...shapes);
  }

  function shape(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function give(number) {
    if (state && state.row && number < state.classes.length) ask("/label", { row: state.row.number, class: number });
  }

  function skip() {
    if (state && state.row) ask("/skip", { row: state.row.number });
  }

  function undo() {
    ask("/undo", {});
  }

  at("skip").addEventListener("click", skip);
  at("undo").addEventListener("click", undo);
  at("undo-last").addEventListener("click", undo);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (/^[1-9]$/.test(event.key)) give(Number(event.key) - 1);
    else if (event.key === "s" || event.key === "S") skip();
    else if (event.key === "u" || event.key === "U") undo();
  });
  ask("/state");
})();
