// Keeps the scores of the current step for the bench.
export default function ({ data }) {
  globalThis.benchScores = data;
  dispatchEvent(new Event("bench-scores"));
}
