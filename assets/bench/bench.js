// The bench: the text being written, the settings, and the distribution of the next token. Python holds the truth: every action goes
// to it and comes back as new data. While a slider moves, and only then, the distribution shown is computed here.

const PLAY_INTERVAL_MS = 700;
const EXACT = "Valeurs exactes, calculées par Python sur tout le vocabulaire.";
const EXACT_FROM_SHEET = "Chiffres écrits à la main ; le reste est calculé par Python, comme pour le modèle.";
const LOCAL_LINK =
  "Le lien est copié. Il ne s’ouvre que sur cet ordinateur : pour la classe, ouvrez d’abord cette page à l’adresse « Network URL » affichée au démarrage du serveur.";

class Bench {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.settings = data.settings;
    this.outbox = [];
    this.isPlaying = false;
    this.view = new StepView((id) => this.send("force", { id }));
    this.tour = new Tour(data.tour, (position) => this.showTour(position), () => this.play(true));
    this.build();
    this.onKey = (event) => this.shortcut(event);
    document.addEventListener("keydown", this.onKey);
    this.onScores = () => this.takeScores();
    addEventListener("bench-scores", this.onScores);
    this.showTour(data.opening.tour, false);
    this.showProjector(data.opening.projector, false);
  }

  build() {
    document.documentElement.lang = "fr"; // Streamlit says "en"
    const act = (name) => () => this.act(name);
    this.sentence = el("ol", { class: "sentence", "aria-label": "Le texte, token par token" });
    this.cursor = el("li", { class: "cursor", "aria-hidden": "true" }, "▌");
    this.sentence.append(this.cursor);
    this.drawnChips = [];
    this.branches = el("div", { class: "branches" });
    this.message = el("p", { class: "message", role: "status" });
    this.buttons = {
      next: button("Token suivant", act("next"), { class: "primary", title: "Alt + N" }),
      back: button("Retour", act("back"), { title: "Alt + B" }),
      play: button("Jouer", act("play"), { title: "Alt + P" }),
      restart: button("Recommencer", act("restart")),
      undo: button("Annuler", act("undo"), { title: "Alt + Z" }),
      redo: button("Rétablir", act("redo"), { title: "Alt + Y" }),
    };
    this.extras = {
      tour: button("Visite guidée", act("tour"), { title: "Alt + V" }),
      projector: button("Projecteur", act("projector"), { title: "Alt + J" }),
      link: button("Copier le lien", act("link")),
      help: button("Aide", act("help"), { title: "Alt + A", "aria-expanded": "false" }),
    };
    this.help = helpPanel();
    this.address = el("input", { class: "address", readonly: true, "aria-label": "L’adresse de cet état", hidden: true });
    this.badge = el("strong", { class: "badge", hidden: true }, "illustratif");
    this.source = el("p", { class: "source" });
    this.controls = new Controls((settings, isDone) => this.change(settings, isDone), () => this.reset());
    this.summary = el("div", { class: "summary" }, this.view.figures, this.badge);
    this.main = el("section", { class: "main", "aria-label": "La distribution du prochain token" }, this.view.table, this.source);
    this.ended = el("p", { class: "ended", hidden: true }, french("Rien à tirer après cet arrêt : revenez en arrière pour revoir une distribution."));
    this.root.append(
      this.tour.element,
      this.sentence,
      this.branches,
      el("div", { class: "actions", "data-part": "buttons" }, ...Object.values(this.buttons), el("span", { class: "gap" }), ...Object.values(this.extras)),
      this.address,
      this.message,
      this.help,
      (this.grid = el("div", { class: "grid" })),
    );
    this.arrange(NARROW_SCREEN.matches);
    this.onNarrow = (event) => this.arrange(event.matches);
    NARROW_SCREEN.addEventListener("change", this.onNarrow);
  }

  // On a phone the temperature stands next to the line it moves, and the other settings after the distribution. Elements are moved rather
  // than styled, so that the keyboard and a screen reader follow the order one sees.
  arrange(isNarrow) {
    const { element: settings, temperature } = this.controls;
    this.view.cut.firstChild.colSpan = isNarrow ? 4 : 6;
    if (isNarrow) {
      this.main.prepend(this.view.strip, temperature, this.summary);
      this.grid.append(this.ended, this.main, this.view.card, settings);
    } else {
      settings.prepend(temperature);
      this.main.prepend(this.summary, this.view.strip);
      this.grid.append(settings, this.ended, this.main, this.view.card);
    }
  }

  get promptLength() {
    return this.data.chips.filter((chip) => chip.prompt).length;
  }

  // How many tokens have been written.
  get length() {
    return this.data.chips.length - this.promptLength;
  }

  // Of the vocabulary.
  get size() {
    return this.data.step?.exact.figures.size ?? Infinity;
  }

  // New data from Python.
  receive(data) {
    this.data = data;
    this.outbox = this.outbox.filter((event) => event.seq > data.acknowledged);
    if (this.outbox.length > 0) this.setTriggerValue("events", this.outbox); // Python takes so many at a time
    this.isReady = true;
    this.takeScores();
    if (this.outbox.length === 0 && !this.controls.isHeld) this.settings = data.settings;
    this.controls.show(this.settings, this.size);
    this.keepFocus(
      () => {
        this.drawText();
        this.drawStep();
      },
      () => [...this.sentence.querySelectorAll("button")].at(-1) ?? this.buttons.next,
    );
    this.updateAddress();
    clearTimeout(this.timer); // an answer may come between two tokens
    if (this.isPlaying && data.stop) this.play(false);
    if (this.isPlaying && this.outbox.length === 0) this.timer = setTimeout(() => this.send("next"), PLAY_INTERVAL_MS);
  }

  // The scores of a step come in a component of their own, before or after the rest, and only when they are new.
  takeScores() {
    const sent = globalThis.benchScores;
    const { step } = this.data;
    if (step && sent?.key === step.key && this.scores?.key !== step.key) this.scores = readScores(sent);
    if (step && this.scores) this.scores.u = step.u;
  }

  // Do something that may take the element with the focus off the screen; another one then gets it.
  keepFocus(action, next) {
    const focused = this.focused();
    action();
    const isMoved = this.root.contains(this.focused()) && this.focused() !== focused;
    if (focused && !isMoved && focused.getClientRects().length === 0) next().focus();
  }

  focused() {
    return this.root.getRootNode().activeElement;
  }

  drawText() {
    const { chips, undo, redo, stop, branches, illustrative, notices } = this.data;
    this.drawChips(chips);
    this.branches.hidden = branches.length === 0;
    this.branches.replaceChildren(
      el("span", {}, french("Autres suites :")),
      ...branches.map((branch, position) => button(branch, () => this.send("branch", { position }), { title: "Revenir à cette suite" })),
    );
    const { next, back, play, restart, undo: undoButton, redo: redoButton } = this.buttons;
    for (const off of [next, play, this.tour.play]) disable(off, Boolean(stop));
    for (const off of [back, restart]) disable(off, this.length === 0);
    disable(undoButton, !undo);
    disable(redoButton, !redo);
    setText(this.message, [...notices, stop].filter(Boolean).join(" "));
    this.badge.hidden = !illustrative;
  }

  // The chips the text keeps stay the same elements, so that the keyboard stays where it is among them.
  drawChips(chips) {
    const drawn = chips.map((chip) => JSON.stringify(chip));
    const changed = drawn.findIndex((chip, position) => chip !== this.drawnChips[position]);
    const kept = changed === -1 ? drawn.length : changed;
    if (kept === drawn.length && kept === this.drawnChips.length) return;
    for (const item of [...this.sentence.children].slice(kept, -1)) item.remove();
    this.cursor.before(...chips.slice(kept).map((chip, position) => this.chip(chip, kept + position)));
    this.drawnChips = drawn;
    this.sentence.scrollTop = this.sentence.scrollHeight;
    if (this.sentence.scrollHeight > this.sentence.clientHeight) this.sentence.tabIndex = 0; // else the keyboard could not scroll it
    else this.sentence.removeAttribute("tabindex");
  }

  chip(chip, position) {
    if (chip.prompt) return el("li", { class: "chip prompt" }, chip.label);
    const share = percent(chip.probability) + (chip.forced ? " · forcé" : "");
    const rewind = button("", () => this.send("rewind", { length: position - this.promptLength }), { title: "Revenir juste avant ce token" });
    rewind.append(el("span", {}, chip.label), el("small", {}, share));
    return el("li", { class: `chip written level-${level(chip.probability)}${chip.forced ? " forced" : ""}` }, rewind);
  }

  // Python's exact step when it is that of the settings shown; otherwise the one computed here.
  drawStep() {
    const { step } = this.data;
    this.main.hidden = this.view.card.hidden = !step;
    this.ended.hidden = Boolean(step);
    if (!step || step.settings.seed !== this.settings.seed) return; // another seed is another u, which Python will say
    const isExact = sameSettings(step.settings, this.settings);
    if (!isExact && this.scores?.key !== step.key) return;
    const shown = isExact ? step.exact : sample(this.scores, this.settings, SHOWN);
    this.view.draw(shown, this.settings);
    this.root.dataset.from = isExact ? "python" : "browser";
    setText(this.source, isExact ? french(this.data.illustrative ? EXACT_FROM_SHEET : EXACT) : liveNote(this.scores));
    this.tour.fill(shown, this.settings, this.promptLength);
  }

  change(settings, isDone) {
    this.settings = settings;
    this.root.classList.toggle("moving", !isDone);
    if (this.data.step) this.drawStep();
    if (isDone) this.send("settle");
  }

  reset() {
    this.controls.show(this.data.defaults, this.size);
    this.change(this.data.defaults, true);
  }

  // Events are numbered and sent again until Python has acknowledged them, so none is lost when it is busy.
  send(name, details = {}) {
    clearTimeout(this.timer);
    if (!this.root.isConnected) return this.destroy();
    const seq = (this.outbox.at(-1)?.seq ?? this.data.acknowledged) + 1;
    this.outbox.push({ seq, name, settings: this.settings, ...details });
    this.root.classList.remove("moving");
    this.setTriggerValue("events", this.outbox);
  }

  act(name) {
    if (name === "play") return this.play(!this.isPlaying);
    if (name === "tour") return this.showTour(this.tour.position ? 0 : 1);
    if (name === "help") return this.toggleHelp();
    if (name === "projector") return this.showProjector(!this.root.classList.contains("projector"));
    if (name === "link") return this.copyLink();
    if (isDisabled(this.buttons[name])) return;
    if (name === "back" || name === "restart") return this.send("rewind", { length: name === "back" ? this.length - 1 : 0 });
    this.play(false);
    this.send(name);
  }

  play(isPlaying) {
    if (isPlaying && (this.data.stop || this.isPlaying)) return;
    clearTimeout(this.timer);
    this.isPlaying = isPlaying;
    setText(this.buttons.play, isPlaying ? "Pause" : "Jouer");
    if (isPlaying) this.send("next");
  }

  showTour(position, takesFocus = true) {
    this.keepFocus(
      () => this.tour.show(position, takesFocus),
      () => this.extras.tour,
    );
    this.root.dataset.tour = position;
    if (position && !this.help.hidden) this.toggleHelp(); // it would cover what the walkthrough points at
    if (this.isReady) this.drawStep();
    if (position && NARROW_SCREEN.matches) this.root.querySelector(TOUR_PARTS[position - 1]).scrollIntoView();
    this.updateAddress();
  }

  showProjector(isOn, takesFocus = true) {
    this.keepFocus(
      () => this.root.classList.toggle("projector", isOn),
      () => this.extras.projector,
    );
    const host = this.root.getRootNode().host;
    if (host) host.dataset.projected = isOn; // style.css then hides the page behind, from the keyboard too
    if (isOn && takesFocus && !this.root.contains(this.focused())) this.extras.projector.focus();
    this.extras.projector.setAttribute("aria-pressed", isOn);
    this.updateAddress();
  }

  toggleHelp() {
    this.keepFocus(
      () => (this.help.hidden = !this.help.hidden),
      () => this.extras.help,
    );
    this.extras.help.setAttribute("aria-expanded", !this.help.hidden);
    if (!this.help.hidden) this.help.focus();
  }

  // The address that restores this state. Whoever receives it has no projector.
  link(isShared = false) {
    const query = new URLSearchParams(this.data.query);
    if (this.tour.position) query.set("visite", this.tour.position);
    if (this.root.classList.contains("projector") && !isShared) query.set("projecteur", "1");
    const text = query.toString();
    return `${location.pathname}${text ? `?${text}` : ""}`;
  }

  updateAddress() {
    if (this.isReady) history.replaceState(history.state, "", this.link());
  }

  // Browsers let a page write to the clipboard only over HTTPS or on the machine itself; elsewhere the address is shown, selected.
  async copyLink() {
    const link = `${location.origin}${this.link(true)}`;
    try {
      await navigator.clipboard.writeText(link);
      setText(this.message, french(isThisMachine() ? LOCAL_LINK : "Le lien est copié."));
    } catch {
      setText(this.message, french("Copiez cette adresse (Ctrl + C) :"));
      this.address.hidden = false;
      this.address.value = link;
      this.address.focus();
      this.address.select();
    }
  }

  shortcut(event) {
    if (!this.root.isConnected) return this.destroy(); // Streamlit has put another bench in its place
    if (event.key === "Escape" && !this.help.hidden) return this.toggleHelp();
    if (event.key === "Escape" && this.root.classList.contains("projector")) this.showProjector(false);
    if (!event.altKey || event.ctrlKey || event.metaKey) return;
    // The letter on the key, whatever the keyboard's layout; where Alt makes another character of it, the key's place.
    const letter = /^[a-z]$/i.test(event.key) ? event.key.toUpperCase() : event.code.slice(-1);
    const name = SHORTCUTS.find(([keys]) => keys.at(-1) === letter)?.[2];
    if (!name) return;
    event.preventDefault();
    this.act(name);
  }

  destroy() {
    clearTimeout(this.timer);
    document.removeEventListener("keydown", this.onKey);
    removeEventListener("bench-scores", this.onScores);
    NARROW_SCREEN.removeEventListener("change", this.onNarrow);
  }
}

// What is copied there opens nowhere else.
function isThisMachine() {
  return ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
}

// The share is the bound that tests/browser/test_sampler.py holds the sampler to.
function liveNote({ largest }) {
  return french(
    `Calculé dans le navigateur pendant le glissement : les mêmes chiffres qu’au relâcher, sauf si la coupe passe au-delà des ${count(largest)} premiers tokens : le nombre de tokens gardés est alors approché à 0,2 % près, et Python le remplace au relâcher.`,
  );
}

const LEVELS = [0.5, 0.2, 0.05, 0.01, 0];

function level(probability) {
  return LEVELS.length - LEVELS.findIndex((least) => probability >= least);
}

function sameSettings(a, b) {
  return Object.keys(a).every((name) => a[name] === b[name]);
}

function helpPanel() {
  const entry = ([keys, what]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, french(what))];
  return el(
    "section",
    { class: "help", "aria-label": "Aide", tabindex: "-1", hidden: true },
    el("h2", {}, "Au clavier"),
    el("dl", {}, ...[...SHORTCUTS, ...OTHER_KEYS].flatMap(entry)),
    el("h2", {}, "Les réglages"),
    el("dl", {}, ...SLIDERS.flatMap(({ label, help }) => [el("dt", {}, label), el("dd", {}, french(help))])),
    el("h2", {}, "Ce que l’on voit"),
    el("p", {}, french("Entropie et choix effectifs décrivent la distribution dont on tire, après la coupe : à quel point le choix est ouvert, et combien de tokens également probables le seraient autant. Somme : celle des probabilités affichées et du reste. u : le nombre tiré, fixé par la graine et par le rang du token.")),
    el("p", {}, french("Sous chaque token écrit : la probabilité que lui donnait le modèle, avant tout réglage ; plus la teinte est forte, plus il était probable. Un token forcé est cerné de tirets. Cliquez un token écrit pour revenir juste avant lui, une ligne du tableau pour forcer ce token.")),
  );
}

function drawBench({ data, parentElement, setTriggerValue }) {
  let root = parentElement.querySelector(".bench");
  if (!root?.bench) {
    root ??= parentElement.appendChild(el("div", { class: "bench" }));
    root.bench = new Bench(root, data);
  }
  root.bench.setTriggerValue = setTriggerValue;
  root.bench.receive(data);
}

// All this code is a component of its own, which Streamlit sends once; mount.js, sent with each step, only calls it.
export default function () {
  globalThis.drawBench = drawBench;
  dispatchEvent(new Event("bench-code"));
}
