// Display names of the trainer's metrics for people who did not write it; the key stays next to the name.

const names: Record<string, string> = {
  accuracy: 'Accuracy',
  f1_macro: 'Macro F1',
  f1_weighted: 'Weighted F1',
  log_loss: 'Log loss',
  mae: 'Mean absolute error',
  male: 'Mean absolute log error',
  mape: 'Mean absolute percentage error',
  mse: 'Mean squared error',
  r2: 'R²',
  rmse: 'Root mean squared error',
  pass_rate: 'Pass rate',
};

/** Returns a metric's display name, or its key if it has none. */
export function nameMetric(key: string): string {
  if (key.startsWith('val_')) return `${nameMetric(key.slice(4))}, validation`;
  return names[key] ?? key;
}

const rule = new RegExp(`\\b(${Object.keys(names).join('|')})(?= (is|lt|lte|gt|gte|[<>≤≥]))`, 'g');
const digest = /\b([0-9a-f]{4})[0-9a-f]{56}([0-9a-f]{4})\b/g;

/** Puts a check's detail into the reader's words: metrics by name, digests shortened. */
export function explainCheck(detail: string | undefined): string | undefined {
  return detail
    ?.replace(rule, (key) => nameMetric(key))
    .replace('; wanted ', ', needs ')
    .replace(digest, '$1…$2');
}
