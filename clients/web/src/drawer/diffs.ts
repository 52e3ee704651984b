// An action's difference holds one part per object: "--- live NAME", "+++ result", then hunks. Between the parts stand
// remarks, and the names of what a mass deletion removes.

export interface ObjectDiff {
  name: string;
  /** Absent where the server shows no lines, because only values that are not shown differ. */
  patch?: string;
}

export interface Difference {
  objects: ObjectDiff[];
  /** Objects that are deleted and not shown. */
  deleted: string[];
  remarks: string[];
}

/** Splits a difference by object. Hunks are counted out, since a line of theirs may look like a header. */
export function splitDiff(diff: string): Difference {
  const found: Difference = { objects: [], deleted: [], remarks: [] };
  let current: ObjectDiff | undefined;
  let before = 0;
  let after = 0;
  const lines = diff.replace(/\n$/, '').split('\n');
  lines.forEach((line, i) => {
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (before > 0 || after > 0 || line.startsWith('\\')) {
      if (current) current.patch += `\n${line}`;
      if (line.startsWith('\\')) return;
      if (!line.startsWith('+')) before--;
      if (!line.startsWith('-')) after--;
    } else if (hunk && current) {
      before = Number(hunk[1] ?? 1);
      after = Number(hunk[2] ?? 1);
      current.patch = current.patch === undefined ? line : `${current.patch}\n${line}`;
    } else if (line.startsWith('--- ') && lines[i + 1]?.startsWith('+++ ')) {
      current = { name: nameOf(line.slice(4), lines[i + 1]?.slice(4) ?? '') };
      found.objects.push(current);
    } else if (line.startsWith('- ')) found.deleted.push(line.slice(2));
    else if (line.startsWith('# ')) found.remarks.push(line.slice(2));
  });
  return found;
}

const nameOf = (from: string, to: string): string => (from === 'nothing yet' ? to : from.replace(/^live /, ''));
