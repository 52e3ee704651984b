import type { ReactNode } from 'react';
import { useEffect } from 'react';
import { text } from '../text';

/** The head of a page: its name, what it says today, and its acts. */
export function PageHead({
  title,
  heading,
  sub,
  chips,
  actions,
}: {
  title: string;
  heading?: ReactNode;
  sub?: ReactNode;
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
        {sub !== undefined && <p>{sub}</p>}
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
