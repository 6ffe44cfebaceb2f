// One step on the screen: its figures, its rows, the line of the draw and the card of one token. Built once, then updated in place,
// so that a slider can redraw it sixty times a second.

const SHOWN = 13;

class StepView {
  constructor(onForce) {
    this.onForce = onForce;
    this.step = null;
    this.pointedId = null;
    this.figures = el("dl", { class: "figures" });
    this.figureValues = {};
    this.rows = Array.from({ length: SHOWN }, () => this.makeRow());
    this.rest = makeCells("");
    this.rest.element.classList.add("rest");
    this.cut = el("tr", { class: "cut" }, el("td", {}, el("span")));
    this.scaledHead = el("th", { scope: "col", class: "c-scaled" }, "logit ÷ T");
    this.drawHead = el("th", { scope: "col", class: "c-draw" }, "tirage");
    this.heads = {
      token: el("th", { scope: "col", class: "c-token" }, "token"),
      logit: el("th", { scope: "col", class: "c-logit" }, "logit"),
      scaled: this.scaledHead,
      softmax: el("th", { scope: "col", class: "c-softmax" }, "softmax", el("small", {}, "barre : 0 à 100 %")),
      cut: el("th", { scope: "col", class: "c-cut" }, "coupe"),
      draw: this.drawHead,
    };
    this.body = el("tbody", {}, ...this.rows.map((row) => row.element), this.cut, this.rest.element);
    this.head = el("tr", {}, ...Object.values(this.heads));
    this.table = el(
      "table",
      { class: "candidates", "aria-label": "Candidats au prochain token, du plus probable au moins probable" },
      el("thead", {}, this.head),
      this.body,
    );
    this.body.addEventListener("keydown", (event) => this.moveFocus(event));
    this.table.addEventListener("pointerleave", () => this.point(null));
    this.makeStrip();
    this.card = el("aside", { class: "card", "aria-label": "Le calcul d’un token" });
  }

  makeRow() {
    const force = button("", () => this.onForce(row.id));
    const row = { force, id: null, ...makeCells(force) };
    row.element.addEventListener("pointerenter", () => this.point(row.id));
    row.element.addEventListener("click", (event) => event.target !== force && this.onForce(row.id));
    force.addEventListener("focus", () => this.point(row.id));
    return row;
  }

  makeStrip() {
    this.needleLabel = el("span");
    this.needle = el("div", { class: "needle" }, this.needleLabel);
    this.segments = Array.from({ length: SHOWN + 2 }, () => el("div", { class: "segment" }));
    this.line = el("div", { class: "line", "aria-hidden": "true" }, ...this.segments, this.needle);
    this.captionParts = [el("span"), el("strong"), el("span")];
    this.caption = el("figcaption", { class: "draw-caption" }, ...this.captionParts);
    this.scale = el("div", { class: "scale", "aria-hidden": "true" }, ...["0", "0,25", "0,5", "0,75", "1"].map((tick) => el("span", {}, tick)));
    this.strip = el("figure", { class: "strip" }, this.line, this.scale, this.caption);
  }

  draw(step, settings) {
    this.step = step;
    this.settings = settings;
    const isGreedy = step.u === null;
    this.orderColumns(settings.order);
    setText(this.scaledHead, settings.repetition_penalty === null ? "logit ÷ T" : "logit pénalisé ÷ T");
    setText(this.drawHead, isGreedy ? "choix" : "tirage");
    this.drawFigures(step, isGreedy);
    this.rows.forEach((row, position) => this.drawRow(row, step.rows[position], isGreedy));
    this.drawRest(step.rest, isGreedy);
    this.drawCut(step, isGreedy);
    this.drawStrip(step, isGreedy);
    const focused = this.rows.find((row) => row.force.matches(":focus-visible"));
    if (focused) this.pointedId = focused.id; // the keyboard has stayed on this row, which now holds another token
    this.drawCard();
  }

  // The columns stand in the order in which the sampler works.
  orderColumns(order) {
    if (this.order === order) return;
    this.order = order;
    const columns = order === "huggingface" ? ["token", "logit", "scaled", "softmax", "cut", "draw"] : ["token", "logit", "softmax", "cut", "scaled", "draw"];
    const place = (element, cells) => element.append(...columns.map((name) => cells[name].element ?? cells[name]));
    place(this.head, this.heads);
    for (const row of [...this.rows, this.rest]) place(row.element, row.cells);
  }

  drawFigures(step, isGreedy) {
    const { figures } = step;
    const shown = {
      Entropie: isGreedy ? "0 bit" : `${number(figures.entropy, 2)} bits`,
      "Choix effectifs": isGreedy ? "1" : number(figures.effective, 1),
      "Tokens gardés": isGreedy ? "le favori seul" : `${count(figures.kept)} sur ${count(figures.size)}`,
      "Masse retirée": isGreedy ? "—" : percent(figures.removed),
      Somme: `${number(figures.sum * 100, 4)}${NARROW}%`,
    };
    for (const [name, value] of Object.entries(shown)) {
      if (!this.figureValues[name]) {
        this.figureValues[name] = el("dd");
        this.figures.append(el("div", {}, el("dt", {}, name), this.figureValues[name]));
      }
      setText(this.figureValues[name], value);
    }
  }

  drawRow(row, data, isGreedy) {
    row.element.hidden = !data;
    if (!data) return;
    row.id = data.id;
    setText(row.force, data.label);
    if (row.force.dataset.id !== String(data.id)) {
      row.force.dataset.id = data.id;
      row.force.title = `Forcer ce token (id ${data.id}, rang ${count(data.rank)})`;
    }
    row.element.classList.toggle("chosen", data.chosen);
    row.element.classList.toggle("is-cut", data.cutBy !== null);
    row.element.classList.toggle("far", data.rank > SHOWN);
    setText(row.cells.logit, logitText(data.logit));
    setText(row.cells.scaled, isGreedy && this.settings.repetition_penalty === null ? "—" : logitText(data.scaled));
    drawBar(row.cells.softmax, data.uncut, percent(data.uncut));
    setText(row.cells.cut, isGreedy ? "—" : data.cutBy ? `coupé, ${STAGE_NAMES[data.cutBy]}` : "gardé");
    if (isGreedy) drawBar(row.cells.draw, 0, data.chosen ? "◀ le favori" : "");
    else drawBar(row.cells.draw, data.prob, data.cutBy ? "—" : percent(data.prob) + (data.chosen ? " ◀ u" : ""));
  }

  drawRest(rest, isGreedy) {
    this.rest.element.hidden = !rest;
    if (!rest) return;
    const { cells } = this.rest;
    setText(cells.token, `… ${plural(rest.tokens, "autre")}`);
    drawBar(cells.softmax, rest.uncut, percent(rest.uncut));
    setText(cells.cut, isGreedy ? "—" : plural(rest.kept, "gardé"));
    drawBar(cells.draw, isGreedy ? 0 : rest.prob, isGreedy ? "" : rest.kept ? percent(rest.prob) + (this.step.choice.id === null ? " ◀ u" : "") : "—");
    this.rest.element.classList.toggle("chosen", this.step.choice.id === null);
    this.rest.element.classList.toggle("is-cut", !isGreedy && rest.kept === 0);
  }

  // The cut is a line under the last row it leaves, with what they weigh together.
  drawCut(step, isGreedy) {
    const lastKept = step.rows.findLastIndex((row) => !row.cutBy);
    const isWithinRows = step.rows.some((row) => row.cutBy) || (step.rest && step.rest.kept === 0);
    const before = isWithinRows && !isGreedy ? (this.rows[lastKept + 1]?.element ?? this.rest.element) : null;
    if (this.cut.nextSibling !== before) this.body.insertBefore(this.cut, before);
    const { figures } = step;
    const everything = figures.kept === figures.known;
    let text = `coupe : ${plural(figures.kept, "gardé")}, ${percent(figures.keptMass)} de la masse`;
    if (isGreedy) text = "décodage glouton : ni division, ni coupe, ni tirage";
    else if (everything) text = "rien n’est coupé : 100 % de la masse";
    else if (!isWithinRows) text = `coupe dans le reste : ${plural(figures.kept, "gardé")}, ${percent(figures.keptMass)} de la masse`;
    setText(this.cut.firstChild.firstChild, french(text));
    this.cut.classList.toggle("none", isGreedy || everything);
  }

  drawStrip(step, isGreedy) {
    this.strip.classList.toggle("greedy", isGreedy);
    this.line.hidden = this.scale.hidden = isGreedy;
    const chosen = step.rows.find((row) => row.chosen);
    if (isGreedy) {
      this.drawCaption(french("Pas de tirage : à T = 0, le favori est pris, "), chosen.label, ".");
      return;
    }
    const segments = stripSegments(step);
    this.segments.forEach((element, position) => {
      const segment = segments[position];
      element.hidden = !segment;
      if (!segment) return;
      element.style.left = `${segment.low * 100}%`;
      element.style.width = `${segment.width * 100}%`;
      element.classList.toggle("chosen", segment.chosen);
      element.classList.toggle("others", segment.id === null);
      element.dataset.id = segment.id ?? "";
      setText(element, segment.width > 0.045 ? segment.label : "");
    });
    this.needle.style.left = `${step.u * 100}%`;
    setText(this.needleLabel, `u = ${number(step.u, 4)}`);
    const u = `u = ${number(step.u, 4)}`;
    if (chosen) this.drawCaption(`${u} tombe sur `, chosen.label, `, qui occupe ${number(step.choice.low, 4)} à ${number(step.choice.low + chosen.prob, 4)}.`);
    else this.drawCaption(french(`${u} tombe loin des plus probables, sur un token que le navigateur n’a pas : au relâcher, Python dira lequel.`), "", "");
  }

  drawCaption(...texts) {
    this.captionParts.forEach((part, position) => {
      setText(part, texts[position]);
      part.hidden = texts[position] === "";
    });
  }

  // Hovering or focusing lights a token everywhere and fills the card; otherwise the card is that of the chosen token.
  point(id) {
    if (this.pointedId === id) return;
    this.pointedId = id;
    this.drawCard();
  }

  drawCard() {
    const { step, pointedId } = this;
    for (const row of this.rows) row.element.classList.toggle("pointed", row.id === pointedId);
    for (const segment of this.segments) segment.classList.toggle("pointed", segment.dataset.id === String(pointedId));
    const row = step.rows.find((row) => row.id === pointedId) ?? step.rows.find((row) => row.chosen);
    if (row) this.card.replaceChildren(...cardLines(row, step, this.settings));
    else this.card.replaceChildren(el("p", {}, french("Le token tiré est parmi ceux qui n’ont pas de ligne : pointez une ligne pour voir son calcul.")));
  }

  moveFocus(event) {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!move) return;
    const shown = this.rows.filter((row) => !row.element.hidden);
    const position = shown.findIndex((row) => row.force === event.target);
    shown[position + move]?.force.focus();
    event.preventDefault();
  }
}

// A table row; its cells can change places.
function makeCells(token) {
  const cells = {
    token: el("th", { scope: "row", class: "c-token" }, token),
    logit: el("td", { class: "c-logit" }),
    scaled: el("td", { class: "c-scaled" }),
    softmax: barCell("c-softmax"),
    cut: el("td", { class: "c-cut" }),
    draw: barCell("c-draw"),
  };
  return { cells, element: el("tr", {}, ...Object.values(cells).map((cell) => cell.element ?? cell)) };
}

// A bar lies behind the text of its cell: lengthening it lays out nothing.
function barCell(name) {
  const text = document.createTextNode("");
  const fill = el("i", { "aria-hidden": "true" });
  return { element: el("td", { class: `bar ${name}` }, text, fill), text, fill };
}

function drawBar(cell, share, text) {
  cell.fill.style.transform = `scaleX(${share})`;
  if (cell.text.data !== text) cell.text.data = text;
}

function logitText(logit) {
  return number(logit, 2);
}

// Kept tokens end to end by decreasing probability. Those without a row make one stretch, split around the chosen one.
function stripSegments(step) {
  const segments = [];
  let end = 0;
  const others = (high) => {
    if (high > end + 1e-9) segments.push({ id: null, label: "autres", low: end, width: high - end, chosen: step.choice.id === null });
  };
  for (const row of step.rows) {
    if (row.prob === 0) continue;
    const low = row.chosen ? step.choice.low : end;
    others(low);
    segments.push({ id: row.id, label: row.label, low, width: row.prob, chosen: row.chosen });
    end = low + row.prob;
  }
  others(1);
  return segments;
}

// The card of a token: every operation with its own numbers, in the order of the sampler.
function cardLines(row, step, settings) {
  const favourite = step.rows[0];
  const isGreedy = step.u === null;
  const temperature = decimal(settings.temperature);
  const penalised = row.scaled * (isGreedy ? 1 : settings.temperature);
  const isPenalised = settings.repetition_penalty !== null && Math.abs(penalised - row.logit) > 1e-9;
  const before = (value) => (settings.order === "huggingface" || isGreedy ? value.scaled : value.scaled * settings.temperature);
  const gap = before(row) - before(favourite);
  const lines = [["logit", logitText(row.logit)]];
  if (isPenalised) lines.push(["déjà dans le texte", `pénalité ${decimal(settings.repetition_penalty)} → ${number(penalised, 2)}`]);
  const divided = ["÷ température", `${number(penalised, 4)} ÷ ${temperature} = ${logitText(row.scaled)}`];
  const softmax = [
    "softmax",
    `e^(${logitText(before(row))} − ${logitText(before(favourite))}) ÷ Σ ≈ ${significant(Math.exp(gap))} ÷ ${number(1 / favourite.uncut, 2)} = ${percent(row.uncut)}`,
  ];
  if (isGreedy) {
    lines.push(softmax, ["choix", row.chosen ? "le plus grand logit : c’est lui" : "un autre a un plus grand logit"]);
  } else {
    const cut = ["coupe", row.cutBy ? `coupé par ${STAGE_NAMES[row.cutBy]}` : "gardé"];
    const share = row.cutBy ? "0" : `${percent(row.uncut)} ÷ ${percent(step.figures.keptMass)} = ${percent(row.prob)}`;
    const again = `e^(${logitText(row.scaled)} − ${logitText(favourite.scaled)}) ÷ Σ = ${percent(row.prob)}`;
    if (settings.order === "huggingface") lines.push(divided, softmax, cut, ["ramené à 100 %", share]);
    else lines.push(softmax, cut, ...(row.cutBy ? [] : [divided, ["softmax des gardés", again]]));
    if (row.chosen) lines.push(["tirage", `u = ${number(step.u, 4)} est dans son segment`]);
    else if (!row.cutBy) lines.push(["tirage", "u tombe ailleurs"]);
  }
  return [
    el("h2", {}, row.label),
    el("p", { class: "id" }, `id ${row.id}, rang ${count(row.rank)}`),
    el("dl", {}, ...lines.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
  ];
}

function significant(value) {
  return value >= 0.0001 ? number(value, 4) : `<${NARROW}0,0001`;
}
