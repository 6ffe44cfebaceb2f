// The settings: sliders that follow the hand, the order of the stages and the seed.

class Controls {
  // onChange(settings, isDone): at each move of a handle, then once, with isDone, when it is let go.
  constructor(onChange, onReset) {
    this.onChange = onChange;
    this.isHeld = false;
    this.sliders = SLIDERS.map((slider) => this.makeSlider(slider));
    this.temperature = this.sliders.find((slider) => slider.name === "temperature").element;
    this.order = el(
      "select",
      { onchange: () => this.set({ order: this.order.value }, true) },
      ...Object.entries(ORDER_NAMES).map(([value, name]) => el("option", { value }, french(name))),
    );
    this.seed = el("input", { type: "number", min: 0, max: MAX_SEED, step: 1, onchange: () => this.setSeed(this.seed.valueAsNumber) });
    this.element = el(
      "section",
      { class: "settings", "aria-label": "Réglages" },
      ...this.sliders.map((slider) => slider.element),
      el("label", { class: "setting" }, el("span", {}, "Ordre des étapes"), this.order),
      el(
        "div",
        { class: "setting seed" },
        el("label", {}, el("span", {}, "Graine"), this.seed),
        button("Autre graine", () => this.setSeed((this.settings.seed + 1) % (MAX_SEED + 1)), { title: "Une autre graine, donc d’autres u" }),
      ),
      button("Réglages de départ", onReset, { class: "reset" }),
    );
  }

  makeSlider({ name, label, stops, off, help }) {
    const id = `setting-${name}`;
    const output = el("output", { for: id });
    const input = el("input", { type: "range", id, min: 0, step: 1, "aria-describedby": `${id}-help` });
    const slider = { name, off, stops, input, output };
    input.addEventListener("pointerdown", () => (this.isHeld = true));
    input.addEventListener("input", () => {
      const value = slider.shown[input.valueAsNumber];
      this.label(slider, value);
      this.set({ [name]: value === off ? null : value }, false);
    });
    input.addEventListener("change", () => {
      this.isHeld = false;
      this.set({}, true);
    });
    for (const end of ["pointerup", "pointercancel"]) input.addEventListener(end, () => (this.isHeld = false));
    slider.element = el(
      "div",
      { class: "setting", "data-part": name },
      el("div", {}, el("label", { for: id }, label), output),
      input,
      el("small", { id: `${id}-help` }, french(help)),
    );
    return slider;
  }

  label({ off, input, output }, value) {
    const text = value === off ? "non" : decimal(value);
    setText(output, text);
    input.setAttribute("aria-valuetext", text);
  }

  set(changed, isDone) {
    this.settings = { ...this.settings, ...changed };
    this.onChange(this.settings, isDone);
  }

  setSeed(seed) {
    if (Number.isInteger(seed) && seed >= 0 && seed <= MAX_SEED) this.set({ seed }, true);
    else this.seed.value = this.settings.seed;
  }

  // Put the handles where the settings say; a value between two stops, from a link, becomes a stop of its own.
  show(settings, size) {
    this.settings = settings;
    for (const slider of this.sliders) {
      const value = settings[slider.name] ?? slider.off;
      const stops = slider.name === "top_k" ? slider.stops.filter((stop) => stop < size) : slider.stops;
      slider.shown = stops.includes(value) ? stops : [...stops, value].sort((a, b) => a - b);
      slider.input.max = slider.shown.length - 1;
      slider.input.value = slider.shown.indexOf(value);
      this.label(slider, value);
    }
    this.order.value = settings.order;
    if (!this.seed.matches(":focus")) this.seed.value = settings.seed;
  }
}
