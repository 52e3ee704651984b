// What is written over a plot, apart from the plot itself: uPlot needs a browser to be loaded.

/** Joins labels that would lie on each other: the first one, and how many more there are. */
export function groupLabels(
  labels: readonly { label: string; at: number }[],
  width: number,
): { label: string; at: number }[] {
  const groups: { label: string; at: number; more: number }[] = [];
  for (const each of [...labels].sort((a, b) => a.at - b.at)) {
    const last = groups.at(-1);
    if (last && each.at - last.at < width) last.more++;
    else groups.push({ ...each, more: 0 });
  }
  return groups.map(({ label, at, more }) => ({ at, label: more ? `${label} +${more}` : label }));
}
