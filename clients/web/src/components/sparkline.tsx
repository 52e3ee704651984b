import { formatScore } from '../format/numbers';
import { text } from '../text';
import type { StateKind } from './icon';

const WIDTH = 88;
const HEIGHT = 22;

/** A trend in a table cell: the usual band, the line, and the last point in its state. Gaps stay gaps. */
export function Sparkline({
  points,
  label,
  state = 'ok',
  band,
}: {
  points: readonly (number | null)[];
  label: string;
  state?: StateKind;
  band?: readonly [number, number];
}) {
  const known = points.filter((p): p is number => p !== null && Number.isFinite(p));
  const last = known.at(-1);
  if (known.length < 2 || last === undefined) {
    return (
      <svg
        className="spark"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${label}: ${text.common.notMeasured}`}
      >
        <path className="dash" d={`M0 ${HEIGHT / 2}H${WIDTH}`} />
      </svg>
    );
  }
  const low = Math.min(...known, ...(band ?? []));
  const high = Math.max(...known, ...(band ?? []));
  const y = (value: number): number =>
    high === low ? HEIGHT / 2 : 3 + (HEIGHT - 6) * (1 - (value - low) / (high - low));
  const x = (i: number): number => (points.length === 1 ? 0 : (i / (points.length - 1)) * (WIDTH - 4));
  let path = '';
  let pen = false;
  points.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) {
      pen = false;
      return;
    }
    path += `${pen ? 'L' : 'M'}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  const lastIndex = points.lastIndexOf(last);
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${label}: ${formatScore(last)}`}>
      {band && (
        <rect className="b" x="0" width={WIDTH - 4} y={y(band[1])} height={Math.max(1, y(band[0]) - y(band[1]))} />
      )}
      <path className="s1" d={path} />
      <circle cx={x(lastIndex)} cy={y(last)} r="2.25" className={`x-${state}`} />
    </svg>
  );
}
