// Numbers as French readers expect them: the same rules, and the same roundings, as inference/formatting.py.

const NARROW = "\u202f";
const MINUS = "\u2212";

// |value| with `digits` decimals. A value half-way between two roundings goes to the even one, as Python's does; toFixed would round it
// up. Such a value is a multiple of 2^-(digits + 1), so one more decimal writes it out in full. Past 1e21 toFixed gives up decimals.
function fixed(value, digits) {
  const size = Math.abs(value);
  if (size >= 1e21) return `${BigInt(size)}${digits ? `.${"0".repeat(digits)}` : ""}`;
  const longer = size.toFixed(digits + 1);
  const isJustAboveEven = Number.isInteger(size * 2 ** (digits + 1)) && /[02468]\.?5$/.test(longer);
  return isJustAboveEven ? longer.replace(/\.?5$/, "") : size.toFixed(digits);
}

function number(value, digits) {
  if (!Number.isFinite(value)) return `${value < 0 ? MINUS : ""}∞`;
  const [whole, decimals] = fixed(value, digits).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, NARROW) + (decimals ? `,${decimals}` : "");
  return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

function percent(probability) {
  if (probability === 0 || probability === 1) return `${probability * 100}${NARROW}%`;
  if (probability < 1e-4) return `<${NARROW}0,01${NARROW}%`;
  if (probability >= 0.9995) return `>${NARROW}99,9${NARROW}%`;
  return `${number(probability * 100, probability >= 0.09995 ? 1 : 2)}${NARROW}%`;
}

// As many decimals as the value has, up to 12.
function decimal(value) {
  return `${value < 0 ? "-" : ""}${fixed(value, 12)}`.replace(/\.?0+$/, "").replace(".", ",");
}

function count(value) {
  return number(value, 0);
}

function plural(value, singular, pluralForm = `${singular}s`) {
  return `${count(value)} ${Math.abs(value) < 2 ? singular : pluralForm}`;
}

// Our own sentences with the spaces French printing wants.
function french(prose) {
  return prose.replace(/ (?=[;:!?»%])|(?<=«) /g, NARROW);
}
