import type { ReactNode } from 'react';
import { useEffect } from 'react';
import type { Figure } from '../state/figure';
import { text } from '../text';
import { Says } from './figure';

/** The head of a page: its name, a summary of today, and its acts. */
export function PageHead({
  title,
  heading,
  sub,
  says,
  chips,
  actions,
}: {
  title: string;
  heading?: ReactNode;
  /** What the page or its object is. */
  sub?: string | false;
  /** A summary of today: sentences about what was measured. */
  says?: readonly Figure<string>[];
  chips?: ReactNode;
  actions?: ReactNode;
}) {
  useDocumentTitle(title);
  return (
    <div className="pagehead">
      <div>
        <h1 className="row wrap" id="page-title" tabIndex={-1}>
          {heading ?? title}
        </h1>
        {says ? (
          <p>
            <Says sentences={says} />
          </p>
        ) : (
          sub && <p dir="auto">{sub}</p>
        )}
        {chips && <div className="row wrap chips">{chips}</div>}
      </div>
      {actions && <div className="acts">{actions}</div>}
    </div>
  );
}

export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ${text.common.product}`;
  }, [title]);
}
