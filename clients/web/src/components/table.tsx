import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from 'react';
import { keysAreOn } from '../state/keys';
import { text } from '../text';
import { Button } from './button';
import { Icon } from './icon';

export interface Column<Row> {
  key: string;
  header: string;
  /** Explains the figures to readers who do not know the word: shown on hover and focus. */
  hint?: string;
  /** Hides the header's text where a column needs none to be seen. */
  quietHeader?: boolean;
  cell: (row: Row) => ReactNode;
  /** What the column sorts by. Undefined and null come last in both directions: not measured is not small. */
  sort?: (row: Row) => string | number | null | undefined;
  numeric?: boolean;
  /** The part of the row that names it: the record's title on a phone. */
  isName?: boolean;
  /** Health and its reason: first line of a record. */
  isHealth?: boolean;
  /** Left out up to 1,024 px, or on a phone. */
  drop?: 'medium' | 'phone';
  className?: string;
}

export interface DataTableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  rowName: (row: Row) => string;
  onOpen?: (row: Row) => void;
  /** Column key, with a minus for descending. */
  sort?: string;
  onSort?: (sort: string) => void;
  /** The rows come in this order from the server, which has more of them. */
  isSorted?: boolean;
  selected?: ReadonlySet<string>;
  onSelect?: (keys: ReadonlySet<string>) => void;
  /** The row that the side column shows. */
  current?: string;
  empty?: ReactNode;
  /** Called when the end of the rows comes into sight; there are more. */
  onEnd?: () => void;
  /** Single keys on a focused row, besides j, k, Enter and x. */
  keyActs?: Record<string, (row: Row) => void>;
}

/** Rows beyond this are drawn only while they are in sight. */
const VIRTUAL_FROM = 100;
const ROW_HEIGHT = 44;

// localeCompare makes a collator for each pair, which takes longer than all else in sorting thousands of rows.
const collator = new Intl.Collator('en', { numeric: true });

/** Sorts a copy; absent values last whichever way. */
export function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sort: string | undefined,
): readonly Row[] {
  const descending = sort?.startsWith('-') ?? false;
  const by = columns.find((column) => column.key === sort?.replace(/^-/, ''))?.sort;
  if (!by) return rows;
  const sign = descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, by: by(row) }));
  keyed.sort(({ by: left }, { by: right }) => {
    if (left === right) return 0;
    if (left === null || left === undefined) return 1;
    if (right === null || right === undefined) return -1;
    if (typeof left === 'string' && typeof right === 'string') return sign * collator.compare(left, right);
    return sign * (left < right ? -1 : 1);
  });
  return keyed.map(({ row }) => row);
}

/** Rows with a sticky head, sorting, selection and keys; on a phone each row is a record. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, rows, columns, rowKey, onOpen, selected, onSelect, current, empty, keyActs } = props;
  const [ownSort, setOwnSort] = useState<string | undefined>(props.sort);
  const sort = props.onSort ? props.sort : ownSort;
  const sorted = useMemo(
    () => (props.isSorted ? rows : sortRows(rows, columns, sort)),
    [rows, columns, sort, props.isSorted],
  );
  const [focusKey, setFocusKey] = useState<string>();
  const body = useRef<HTMLTableSectionElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const isVirtual = sorted.length > VIRTUAL_FROM;
  const virtual = useVirtualizer({
    count: isVirtual ? sorted.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    // On a phone a row is a record, of a height that only it knows; by the estimate rows would be skipped.
    measureElement: (element) => element.getBoundingClientRect().height || ROW_HEIGHT,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const shown = isVirtual
    ? items.map((item) => ({ row: sorted[item.index] as Row, index: item.index }))
    : sorted.map((row, index) => ({ row, index }));
  const before = isVirtual ? (items[0]?.start ?? 0) : 0;
  const after = isVirtual ? virtual.getTotalSize() - (items.at(-1)?.end ?? 0) : 0;
  const isWide = useOverflow(scroller, rows.length > 0);
  // The row that Tab reaches: the focused one, or the first if that one is filtered out.
  const tabKey = useMemo(() => {
    const first = sorted[0] && rowKey(sorted[0]);
    return focusKey !== undefined && sorted.some((row) => rowKey(row) === focusKey) ? focusKey : first;
  }, [sorted, focusKey]);
  const pendingFocus = useRef<string>(undefined);

  const toggle = (row: Row): void => {
    if (!onSelect) return;
    const next = new Set(selected);
    const key = rowKey(row);
    if (!next.delete(key)) next.add(key);
    onSelect(next);
  };
  const focusRow = (index: number): void => {
    const row = sorted[Math.max(0, Math.min(sorted.length - 1, index))];
    if (!row) return;
    const key = rowKey(row);
    setFocusKey(key);
    if (isVirtual) virtual.scrollToIndex(index);
    pendingFocus.current = key;
    rowElement(body.current, key)?.focus();
  };
  // A row that was out of sight is focused once it is drawn.
  useEffect(() => {
    if (!pendingFocus.current) return;
    const element = rowElement(body.current, pendingFocus.current);
    if (element) {
      element.focus();
      pendingFocus.current = undefined;
    }
  });
  const isAtEnd = isVirtual && items.length > 0 && items.at(-1)?.index === sorted.length - 1;
  const { onEnd } = props;
  useEffect(() => {
    if (isAtEnd) onEnd?.();
  }, [isAtEnd, onEnd === undefined, sorted.length]);
  // j and k enter the table from anywhere on the page.
  useEffect(() => {
    const enter = (event: globalThis.KeyboardEvent): void => {
      if (
        (event.key !== 'j' && event.key !== 'k') ||
        !keysAreOn(event) ||
        body.current?.contains(document.activeElement)
      )
        return;
      if (document.querySelector('table[data-rows] tbody') !== body.current) return;
      event.preventDefault();
      focusRow(
        Math.max(
          0,
          sorted.findIndex((row) => rowKey(row) === (focusKey ?? current)),
        ),
      );
    };
    addEventListener('keydown', enter);
    return () => removeEventListener('keydown', enter);
  });

  const onKey = (event: KeyboardEvent, row: Row, index: number): void => {
    if (event.target !== event.currentTarget) return;
    if (event.key === 'Enter' && onOpen) onOpen(row);
    else if (event.key === 'ArrowDown') focusRow(index + 1);
    else if (event.key === 'ArrowUp') focusRow(index - 1);
    else if (!keysAreOn(event.nativeEvent)) return;
    else if (event.key === 'j') focusRow(index + 1);
    else if (event.key === 'k') focusRow(index - 1);
    else if (event.key === 'x') toggle(row);
    else if (keyActs?.[event.key]) keyActs[event.key]?.(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // One object for all renders, so that a row which stays in sight is not drawn again while the table scrolls.
  const latest = useRef<RowActs<Row>>(undefined);
  latest.current = { onKey, onOpen: (row) => onOpen?.(row), onToggle: toggle, onFocus: setFocusKey };
  const acts = useMemo<RowActs<Row>>(
    () => ({
      onKey: (event, row, index) => latest.current?.onKey(event, row, index),
      onOpen: (row) => latest.current?.onOpen(row),
      onToggle: (row) => latest.current?.onToggle(row),
      onFocus: (key) => latest.current?.onFocus(key),
    }),
    [],
  );

  if (rows.length === 0 && empty) return <>{empty}</>;
  const allSelected = selected !== undefined && rows.length > 0 && rows.every((row) => selected.has(rowKey(row)));
  return (
    <div
      className={isVirtual ? 'tablewrap virtual' : isWide ? 'tablewrap wide' : 'tablewrap'}
      ref={scroller}
      tabIndex={isVirtual ? 0 : undefined}
      role="group"
      aria-label={label}
    >
      <table className="table recs" data-rows aria-rowcount={sorted.length + 1}>
        <caption className="vh">{label}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {onSelect && (
              <th scope="col" className="hide-s pick">
                <input
                  className="chk"
                  type="checkbox"
                  aria-label={text.common.selectAll}
                  checked={allSelected}
                  onChange={() => onSelect(allSelected ? new Set() : new Set(rows.map(rowKey)))}
                />
              </th>
            )}
            {columns.map((column) => (
              <HeaderCell key={column.key} column={column} sort={sort} onSort={props.onSort ?? setOwnSort} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {before > 0 && <tr aria-hidden="true" className="spacer" style={{ height: before }} />}
          {shown.map(({ row, index }) => {
            const key = rowKey(row);
            return (
              <TableRow
                key={key}
                rowKey={key}
                row={row}
                index={index}
                columns={columns}
                name={props.rowName(row)}
                opens={onOpen !== undefined}
                picks={onSelect !== undefined}
                isSelected={
                  onSelect ? selected?.has(key) === true : current !== undefined ? key === current : undefined
                }
                isTabStop={key === tabKey}
                measure={isVirtual ? virtual.measureElement : undefined}
                acts={acts}
              />
            );
          })}
          {after > 0 && <tr aria-hidden="true" className="spacer" style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  );
}

/** What a row asks of its table. */
interface RowActs<Row> {
  onKey: (event: KeyboardEvent, row: Row, index: number) => void;
  onOpen: (row: Row) => void;
  onToggle: (row: Row) => void;
  onFocus: (key: string) => void;
}

interface TableRowProps<Row> {
  rowKey: string;
  row: Row;
  index: number;
  columns: readonly Column<Row>[];
  name: string;
  opens: boolean;
  picks: boolean;
  isSelected: boolean | undefined;
  isTabStop: boolean;
  measure?: (element: HTMLElement | null) => void;
  acts: RowActs<Row>;
}

function PlainTableRow<Row>({
  rowKey,
  row,
  index,
  columns,
  name,
  opens,
  picks,
  isSelected,
  isTabStop,
  measure,
  acts,
}: TableRowProps<Row>) {
  return (
    <tr
      ref={measure}
      data-index={index}
      data-key={rowKey}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      tabIndex={isTabStop ? 0 : -1}
      className={opens ? 'opens' : undefined}
      onFocus={() => acts.onFocus(rowKey)}
      onKeyDown={(event) => acts.onKey(event, row, index)}
      onClick={(event) => {
        // Links, boxes and buttons inside do their own; a drag that selects text opens nothing.
        if ((event.target as Element).closest('a, button, input, label') || getSelection()?.toString()) return;
        acts.onOpen(row);
      }}
    >
      {picks && (
        <td className="pick">
          <input
            className="chk"
            type="checkbox"
            tabIndex={-1}
            aria-label={text.common.selectRow(name)}
            checked={isSelected === true}
            onChange={() => acts.onToggle(row)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td
          key={column.key}
          className={cellClass(column)}
          data-l={column.isName || column.isHealth ? undefined : column.header}
        >
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

const TableRow = memo(PlainTableRow) as typeof PlainTableRow;

/** Reports whether the table is wider than its room: then it scrolls, and the head cannot stick to the page. */
function useOverflow(wrap: RefObject<HTMLDivElement | null>, isDrawn: boolean): boolean {
  const [isWide, setWide] = useState(false);
  useEffect(() => {
    const element = wrap.current;
    const table = element?.querySelector('table');
    if (!element || !table || typeof ResizeObserver === 'undefined') return;
    const measure = new ResizeObserver(() => setWide(table.offsetWidth > element.clientWidth + 1));
    measure.observe(element);
    measure.observe(table);
    return () => measure.disconnect();
  }, [wrap, isDrawn]);
  return isWide;
}

function rowElement(body: HTMLElement | null, key: string): HTMLElement | undefined {
  return [...(body?.querySelectorAll<HTMLElement>('tr[data-key]') ?? [])].find((row) => row.dataset.key === key);
}

function cellClass<Row>(column: Column<Row>): string | undefined {
  const classes = [
    column.numeric && 'num',
    column.isName && 'name',
    column.isHealth && 'hcell full',
    column.drop === 'medium' && 'drop-m',
    column.drop === 'phone' && 'hide-s',
    column.className,
  ].filter(Boolean);
  return classes.length ? classes.join(' ') : undefined;
}

function HeaderCell<Row>({
  column,
  sort,
  onSort,
}: {
  column: Column<Row>;
  sort: string | undefined;
  onSort: (sort: string) => void;
}) {
  const classes = cellClass({ ...column, isName: false, isHealth: false });
  const active = sort?.replace(/^-/, '') === column.key;
  const descending = active && sort?.startsWith('-');
  return (
    <th scope="col" className={classes} aria-sort={active ? (descending ? 'descending' : 'ascending') : undefined}>
      {column.sort && !column.quietHeader ? (
        <button
          type="button"
          className={active ? 'sort on' : 'sort'}
          title={
            column.hint ? `${column.hint}. ${text.common.sortBy(column.header)}` : text.common.sortBy(column.header)
          }
          onClick={() => onSort(active && !descending ? `-${column.key}` : column.key)}
        >
          {column.header}
          {active && <Icon name={descending ? 'down' : 'up'} small />}
        </button>
      ) : column.quietHeader ? (
        <span className="vh">{column.header}</span>
      ) : column.hint ? (
        <span title={column.hint}>{column.header}</span>
      ) : (
        column.header
      )}
    </th>
  );
}

/** Takes the place of the filters while rows are selected. */
export function BulkBar({ count, onClear, children }: { count: number; onClear: () => void; children: ReactNode }) {
  return (
    <div className="bulk" role="toolbar" aria-label={text.common.selected(count)}>
      <b className="med">{text.common.selected(count)}</b>
      {children}
      <Button kind="ghost" className="end" onPress={onClear}>
        {text.common.clearSelection}
      </Button>
    </div>
  );
}
