// The walkthrough: its steps are data (assets/lessons/tour.json); here they are shown, their blanks filled with the bench's own numbers.

// What each step speaks of, from the first; on a phone it is brought on the screen.
const TOUR_PARTS = [".sentence", ".candidates", '[data-part="temperature"]', ".candidates", ".strip", ".sentence"];

class Tour {
  constructor(steps, onMove, onPlay) {
    this.steps = steps;
    this.onMove = onMove;
    this.title = el("h2", { tabindex: "-1" });
    this.text = el("p");
    this.back = button("Précédent", () => onMove(this.position - 1));
    this.next = button("Suivant", () => onMove(this.position + 1), { class: "primary" });
    this.play = button("Jouer la boucle jusqu’à l’arrêt", onPlay, { class: "primary" });
    this.close = button("Quitter la visite", () => onMove(0));
    this.element = el(
      "section",
      { class: "tour", "aria-label": "Visite guidée", hidden: true },
      this.title,
      this.text,
      el("div", { class: "actions" }, this.back, this.next, this.play, this.close),
    );
    this.position = 0;
  }

  // Position 0 is closed; steps count from 1.
  show(position, takesFocus) {
    this.position = position;
    this.element.hidden = position === 0;
    if (position === 0) return;
    disable(this.back, position === 1);
    this.next.hidden = position === this.steps.length;
    this.play.hidden = position !== this.steps.length;
    setText(this.title, `${position}/${this.steps.length} · ${this.steps[position - 1].title}`);
    if (takesFocus) this.title.focus();
  }

  fill(step, settings, promptCount) {
    if (this.position === 0 || !step) return;
    const { text, greedy } = this.steps[this.position - 1];
    const chosen = step.rows.find((row) => row.chosen);
    const second = step.rows[1];
    const blanks = {
      prompt: plural(promptCount, "token"),
      size: count(step.figures.size),
      first: `« ${step.rows[0].label} »`,
      firstLogit: logitText(step.rows[0].logit),
      second: second ? `« ${second.label} »` : "",
      secondLogit: second ? logitText(second.logit) : "",
      temperature: decimal(settings.temperature),
      firstShare: percent(step.rows[0].uncut),
      kept: plural(step.figures.kept, "token"),
      keptMass: percent(step.figures.keptMass),
      u: step.u === null ? "" : number(step.u, 4),
      chosen: chosen ? `« ${chosen.label} »` : "un token plus rare",
    };
    const template = step.u === null && greedy ? greedy : text;
    // A token may be written from right to left: each blank is kept apart from what surrounds it.
    const parts = french(template).split(/\{(\w+)\}/).map((part, position) => (position % 2 ? el("bdi", {}, blanks[part]) : part));
    const filled = el("p", {}, ...parts);
    if (filled.textContent !== this.text.textContent) this.text.replaceChildren(...filled.childNodes);
  }
}
