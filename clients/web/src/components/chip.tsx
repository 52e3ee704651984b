import type { ReactNode } from 'react';
import { text } from '../text';

type ChipKind = 'prod' | 'cand' | 'synth' | 'mono' | 'partial';

export function Chip({ kind, title, children }: { kind?: ChipKind; title?: string; children: ReactNode }) {
  return (
    <span className={kind ? `chip ${kind}` : 'chip'} title={title}>
      {children}
    </span>
  );
}

/** Marks generated data wherever it shows, so that it does not pass for measured. */
export function GeneratedChip() {
  return (
    <Chip kind="synth" title={text.common.generatedTitle}>
      {text.common.generated}
    </Chip>
  );
}

/** A version under an alias: a full dot for Production, a ring for the others. */
export function AliasChip({ alias, version, note }: { alias: string; version: number | string; note?: string }) {
  const production = alias === 'Production';
  return (
    <Chip kind={production ? 'prod' : 'cand'}>
      {production && !note ? `v${version}` : `${alias} v${version}${note ? `, ${note}` : ''}`}
    </Chip>
  );
}
