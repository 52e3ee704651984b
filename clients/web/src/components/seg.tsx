import type { Figure } from '../state/figure';
import { Count } from './figure';

export interface Segment<T extends string> {
  value: T;
  label: string;
  count?: Figure<number>;
}

/** Views of the same thing, one pressed. */
export function Segments<T extends string>({
  label,
  segments,
  value,
  onChange,
  className = '',
}: {
  label: string;
  segments: readonly Segment<T>[];
  value: T;
  onChange: (value: T) => void;
  className?: string;
}) {
  return (
    <span className={`seg ${className}`} role="group" aria-label={label}>
      {segments.map((segment) => (
        <button
          key={segment.value}
          type="button"
          aria-pressed={segment.value === value}
          onClick={() => onChange(segment.value)}
        >
          {segment.label}
          {segment.count && <Count figure={segment.count} />}
        </button>
      ))}
    </span>
  );
}
