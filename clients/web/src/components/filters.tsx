import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { Figure } from '../state/figure';
import { keysAreOn } from '../state/keys';
import { text } from '../text';
import { TextField } from './field';
import { Icon } from './icon';
import { Keys } from './kbd';
import { MenuButton } from './menu';

/** The text filter of a page: `/` goes there, Esc empties it. */
export function TextFilter({
  label,
  value,
  onChange,
  onDraft,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** Gets each letter at once, for lists that filter as fast as one types. */
  onDraft?: (value: string) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  // The address follows a moment later: each letter would be a step of history and a redraw.
  useEffect(() => {
    if (draft === value) return;
    const timer = setTimeout(() => onChange(draft), 120);
    return () => clearTimeout(timer);
  }, [draft, value, onChange]);
  useEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      if (event.key !== '/' || !keysAreOn(event)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener('keydown', focus);
    return () => removeEventListener('keydown', focus);
  }, []);
  return (
    <div className="grow fi">
      <TextField
        label={label}
        quietLabel
        icon="search"
        placeholder={label}
        value={draft}
        onChange={(next) => {
          setDraft(next);
          onDraft?.(next);
        }}
        inputRef={input}
        suffix={<Keys keys="/" />}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          setDraft('');
          onDraft?.('');
          onChange('');
          input.current?.blur();
        }}
      />
    </div>
  );
}

export interface FilterOption {
  id: string;
  label: string;
  count?: Figure<number>;
}

/** A filter by a field: dashed while it may be added, solid when set. */
export function FilterChip({
  name,
  options,
  value,
  onChange,
}: {
  name: string;
  options: readonly FilterOption[];
  value: readonly string[];
  onChange: (value: string[]) => void;
}) {
  const set = value.length > 0;
  const chosen = options.filter((option) => value.includes(option.id)).map((option) => option.label);
  return (
    <span className="filter-w">
      <MenuButton
        label={text.common.addFilter(name)}
        placement="bottom start"
        multiple
        entries={options.map(({ id, label, count }) => ({
          id,
          label,
          detail: count?.kind === 'measured' ? String(count.value) : undefined,
        }))}
        selected={value}
        onSelect={onChange}
        button={{
          className: set ? 'filter on' : 'filter',
          icon: set ? undefined : 'plus',
          children: set ? (
            <>
              {name}: <b>{chosen.join(', ') || value.join(', ')}</b>
            </>
          ) : (
            name
          ),
        }}
      />
      {set && (
        <button
          type="button"
          className="filter-x"
          aria-label={text.common.clearFilter(name)}
          onClick={() => onChange([])}
        >
          <Icon name="x" small />
        </button>
      )}
    </span>
  );
}

export function FilterBar({ children }: { children: ReactNode }) {
  return <div className="row wrap filters filterbar">{children}</div>;
}
