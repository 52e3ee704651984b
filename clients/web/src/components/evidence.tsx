import { createContext, useContext, type ReactNode } from 'react';
import { sourceless, type Figure } from '../state/figure';

const Measured = createContext<Figure<unknown> | undefined>(undefined);

/** Names the services that an element's value comes from, its state and its time: tests check each page by them. */
export function evidenceOf(figure: Figure<unknown>): Record<`data-${string}`, string | undefined> {
  return {
    'data-figure': figure.kind,
    'data-source': figure.from.join(' '),
    'data-as-of': figure.kind === 'measured' ? figure.asOf?.toISOString() : undefined,
  };
}

/** Marks what it contains as the rendering of a figure. A tick is drawn only within one that was measured. */
export function Evidence({
  of,
  as: Tag = 'span',
  children,
}: {
  of: Figure<unknown>;
  as?: 'span' | 'div';
  children: ReactNode;
}) {
  return (
    <Measured.Provider value={of}>
      <Tag className="evidence-of" {...evidenceOf(of)}>
        {children}
      </Tag>
    </Measured.Provider>
  );
}

/** Evidence for an element that has the attributes itself. */
export const EvidenceProvider = Measured.Provider;

/** Returns the figure that the enclosing panel shows; where none does, nothing was measured. */
export const useEvidence = (): Figure<unknown> => useContext(Measured) ?? sourceless;

/** Reports whether what is drawn here was measured. */
export function useIsMeasured(): boolean {
  return useEvidence().kind === 'measured';
}
