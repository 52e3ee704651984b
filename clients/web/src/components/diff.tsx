import { text } from '../text';

interface Line {
  kind: 'add' | 'del' | 'hunk' | 'same';
  number?: number;
  text: string;
}

/** Reads the hunks of a unified patch; header lines of the file are left out. */
export function readPatch(patch: string): Line[] {
  const lines: Line[] = [];
  let before = 0;
  let after = 0;
  let inHunk = false;
  for (const raw of patch.replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(raw);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      inHunk = true;
      lines.push({ kind: 'hunk', text: raw });
    } else if (!inHunk || raw.startsWith('\\')) {
      continue;
    } else if (raw.startsWith('+')) lines.push({ kind: 'add', number: after++, text: raw.slice(1) });
    else if (raw.startsWith('-')) lines.push({ kind: 'del', number: before++, text: raw.slice(1) });
    else {
      before++;
      lines.push({ kind: 'same', number: after++, text: raw.slice(1) });
    }
  }
  return lines;
}

const marks = { add: '+', del: '−', hunk: ' ', same: ' ' } as const;

/** The exact difference of one file. */
export function DiffView({
  file,
  patch,
  additions,
  deletions,
}: {
  file: string;
  patch?: string;
  additions?: number;
  deletions?: number;
}) {
  return (
    <div className="diff">
      <header>
        <code>{file}</code>
        <span className="end nowrap">
          {additions !== undefined && <span className="plus">+{additions}</span>}{' '}
          {deletions !== undefined && <span className="minus">−{deletions}</span>}
        </span>
      </header>
      {patch === undefined ? (
        <p className="small muted pad-s">{text.common.noPatch}</p>
      ) : (
        <pre tabIndex={0} aria-label={text.common.diffLabel(file)}>
          {readPatch(patch).map((line, i) => (
            <span key={i} className={`ln ${line.kind === 'same' ? '' : line.kind}`}>
              <i>{line.number}</i>
              <b>{marks[line.kind]}</b>
              <span>{line.text}</span>
            </span>
          ))}
        </pre>
      )}
    </div>
  );
}
