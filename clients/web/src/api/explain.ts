// The words for a failed request.

import { text } from '../text';
import { Problem } from './problem';

/** Returns a title for what failed and a hint on what to do. */
export function explainProblem(error: unknown): { title: string; hint: string } {
  const words = text.common.errors;
  if (!(error instanceof Problem)) return { title: words.unexpected, hint: words.unexpectedHint };
  if (error.code === 'unreachable') return { title: words.unreachable, hint: words.unreachableHint };
  if (error.status === 429)
    return {
      title: words.rate_limited,
      hint: error.retryAfter ? words.rateLimitedHint(error.retryAfter) : error.message,
    };
  const known = words[error.code as keyof typeof words];
  const title = typeof known === 'string' ? known : error.title || words.unexpected;
  return { title, hint: error.message !== title ? error.message : words.otherPanels };
}
