// The sliders: which values each can stand on, and what it says. `off` is the value at which the stage does nothing.

function range(low, high, step) {
  return Array.from({ length: Math.round((high - low) / step) + 1 }, (_, position) => Number((low + position * step).toFixed(6)));
}

const SLIDERS = [
  {
    name: "temperature",
    label: "Température",
    stops: range(0, 2, 0.01),
    help: "Divise tous les logits. Sous 1 le favori écrase les autres ; au-dessus, les outsiders remontent. 0 : décodage glouton, sans division ni tirage.",
  },
  {
    name: "top_k",
    label: "Top-k",
    off: 0,
    stops: [...range(0, 50, 1), ...range(60, 100, 10), 150, 200, 300, 500, 1000, 2000, 5000, 20000],
    help: "Garde les k tokens les plus probables.",
  },
  {
    name: "top_p",
    label: "Top-p",
    off: 1,
    stops: [...range(0, 0.99, 0.01), 0.995, 0.999, 1],
    help: "Parmi les tokens encore en lice, ramenés à 100 %, garde le plus petit groupe qui atteint p, celui qui franchit p compris. 0 : le favori seul.",
  },
  {
    name: "min_p",
    label: "Min-p",
    off: 0,
    stops: [...range(0, 0.01, 0.001), ...range(0.02, 1, 0.01)],
    help: "Garde les tokens au moins « min-p » fois aussi probables que le favori.",
  },
  {
    name: "repetition_penalty",
    label: "Pénalité de répétition",
    off: 1,
    stops: range(0.5, 2, 0.05),
    help: "Divise le logit des tokens déjà dans le texte (le multiplie s’il est négatif).",
  },
];

const ORDER_NAMES = { huggingface: "Hugging Face (T d’abord)", llamacpp: "llama.cpp (T à la fin)" };
const STAGE_NAMES = { top_k: "top-k", top_p: "top-p", min_p: "min-p" };
const MAX_SEED = 2 ** 32 - 1;

const SHORTCUTS = [
  ["Alt + N", "token suivant", "next"],
  ["Alt + B", "retour d’un token", "back"],
  ["Alt + P", "jouer, ou mettre en pause", "play"],
  ["Alt + Z", "annuler", "undo"],
  ["Alt + Y", "rétablir", "redo"],
  ["Alt + V", "ouvrir ou fermer la visite guidée", "tour"],
  ["Alt + A", "ouvrir ou fermer cette aide", "help"],
  ["Alt + J", "mode projecteur", "projector"],
];

const OTHER_KEYS = [
  ["↑ ↓", "dans le tableau : passer d’un token à l’autre, et voir son calcul"],
  ["Entrée", "sur un token du tableau : le forcer ; sur un token du texte : y revenir"],
  ["← →", "sur un curseur : un cran ; Origine et Fin : les extrêmes"],
];
