// Numbers for people: digits grouped, a self-explanatory unit, the real minus sign.

const MINUS = '\u2212';
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

function fixed(value: number, decimals: number): string {
  const text = new Intl.NumberFormat('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).format(Math.abs(value));
  // What rounds to zero has no sign.
  return value < 0 && Number(text.replaceAll(',', '')) !== 0 ? MINUS + text : text;
}

/** Returns 48,212, and from 100,000 on 104 k, 2.3 M. */
export function formatCount(value: number): string {
  const size = Math.abs(value);
  if (size < 99_999.5) return value < 0 ? MINUS + grouped.format(size) : grouped.format(value);
  if (size < 999_500) return `${fixed(value / 1e3, 0)} k`;
  const millions = value / 1e6;
  return size < 1e9 ? `${fixed(millions, Math.abs(millions) < 100 ? 1 : 0)} M` : `${fixed(value / 1e9, 1)} G`;
}

/** Returns 94 % for 0.94; one decimal below 1 % so that little is not nothing. */
export function formatShare(ratio: number): string {
  const percent = ratio * 100;
  return `${fixed(percent, percent !== 0 && Math.abs(percent) < 1 ? 1 : 0)} %`;
}

/** Returns a percentage that a server gave as 0 to 100. */
export function formatPercent(percent: number): string {
  return formatShare(percent / 100);
}

/** Returns 412, 7.4 or 0.08: the digits a rate or latency is good for. */
export function formatRate(value: number): string {
  const size = Math.abs(value);
  if (size >= 99_999.5) return formatCount(value);
  if (size >= 99.95 || value === 0) return fixed(value, 0);
  return fixed(value, size >= 1 ? 1 : 2);
}

/** Returns three significant digits: 0.761, 12.3, 1,588. */
export function formatScore(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return size >= 1e6 ? formatCount(value) : fixed(value, 0);
  if (size >= 9.995) return fixed(value, 1);
  if (size >= 0.9995) return fixed(value, 2);
  if (size >= 0.0005 || value === 0) return fixed(value, 3);
  return value.toExponential(1).replace('-', MINUS).replace('e', ' e');
}

/** Returns a z score with two decimals. */
export function formatZ(value: number): string {
  return fixed(value, 2);
}

/** Returns USD 11.70. */
export function formatMoney(usd: number): string {
  return `USD ${formatAmount(usd)}`;
}

/** Returns the amount without its unit, for columns whose header has it. */
export function formatAmount(usd: number): string {
  return fixed(usd, 2);
}

/** Returns 1.9 kg CO₂e ± 30 %; the page that shows it links the method. */
export function formatCarbon(kilograms: number, uncertainty?: number): string {
  const mass = Math.abs(kilograms) >= 1000 ? `${formatRate(kilograms / 1000)} t` : `${formatRate(kilograms)} kg`;
  return uncertainty === undefined ? `${mass} CO₂e` : `${mass} CO₂e ± ${formatShare(uncertainty)}`;
}

/** Returns 4.9 MB, in powers of ten as disks and networks count. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? fixed(value, 0) : formatRate(value)} ${units[unit]}`;
}

/** Returns −2.9 % or +5.0 %, the change from one value to another; undefined where the first is next to nothing, as a baseline's R² is. */
export function formatChange(from: number, to: number): string | undefined {
  if (from === 0 || !Number.isFinite(from) || !Number.isFinite(to)) return undefined;
  const percent = ((to - from) / Math.abs(from)) * 100;
  if (Math.abs(percent) >= 100_000) return undefined;
  const decimals = Math.abs(percent) < 10 ? 1 : 0;
  const text = fixed(percent, decimals);
  return `${!text.startsWith(MINUS) && Number(text.replaceAll(',', '')) !== 0 ? '+' : ''}${text} %`;
}

/** Shortens a hash or id in the middle: 8f3a…c210. */
export function shortenHash(text: string, keep = 4): string {
  return text.length <= keep * 2 + 1 ? text : `${text.slice(0, keep)}…${text.slice(-keep)}`;
}

/** Shortens a commit to the eight digits people know it by. */
export function shortenCommit(sha: string): string {
  return /^[0-9a-f]{12,}$/i.test(sha) ? sha.slice(0, 8) : sha;
}
