// Draws the bench, as soon as its code is there.
export default function (mounted) {
  if (globalThis.drawBench) globalThis.drawBench(mounted);
  else addEventListener("bench-code", () => globalThis.drawBench(mounted), { once: true });
}
