// A table that is sorted by its headings, walked through with arrow keys, and read as cards on a narrow screen.
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { count } from "../core/words";

export interface Column<T> {
  key: string;
  words: string;
  draw: (row: T) => ComponentChildren;
  /** What it is sorted by; without it, it cannot be. */
  by?: (row: T) => string | number;
  numeric?: boolean;
}

const FIRST_ROWS = 100;

export function Table<T>({ label, columns, rows, keyOf, sorted = "", down = false, onOpen }: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** The column that it is sorted by at first; without one, the order is that of the rows. */
  sorted?: string;
  down?: boolean;
  onOpen?: (row: T) => void;
}): VNode {
  const [order, setOrder] = useState({ key: sorted, down });
  const [most, setMost] = useState(FIRST_ROWS);
  const column = columns.find((each) => each.key === order.key);
  const all = column?.by ? [...rows].sort((a, b) => compare(column.by!(a), column.by!(b)) * (order.down ? -1 : 1)) : rows;
  const turn = (key: string) => setOrder({ key, down: order.key === key ? !order.down : Boolean(columns.find((each) => each.key === key)?.numeric) });
  return (
    <div class="table">
      {columns.some((each) => each.by) && rows.length > 1 && (
        <div class="sort-narrow">
          <label>Sort by <select aria-label={`Sort by: ${label}`} value={order.key} onChange={(event) => turn(event.currentTarget.value)}>
            {!order.key && <option value="">default order</option>}
            {columns.filter((each) => each.by).map((each) => <option key={each.key} value={each.key}>{each.words}</option>)}
          </select></label>
          <button type="button" class="quiet" disabled={!order.key} onClick={() => turn(order.key)}>{order.down ? "Largest first" : "Smallest first"}</button>
        </div>
      )}
      <table role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((each) => (
              <th key={each.key} role="columnheader" scope="col" class={each.numeric ? "numeric" : ""}
                aria-sort={each.by ? (order.key === each.key ? (order.down ? "descending" : "ascending") : "none") : undefined}>
                {each.by ? <button type="button" class="heading" onClick={() => turn(each.key)}>{each.words}<span aria-hidden="true">{order.key === each.key ? (order.down ? " ↓" : " ↑") : ""}</span></button> : each.words || <span class="unseen">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup" onKeyDown={walk}>
          {all.slice(0, most).map((row, at) => (
            <tr key={keyOf(row)} role="row" class={onOpen ? "opens" : ""} tabIndex={onOpen ? (at ? -1 : 0) : undefined} onClick={onOpen && (() => onOpen(row))}
              onKeyDown={onOpen && ((event) => { if (event.key === "Enter" && event.target === event.currentTarget) onOpen(row); })}>
              {columns.map((each) => <td key={each.key} role="cell" data-label={each.words} class={each.numeric ? "numeric" : ""}><div>{each.draw(row)}</div></td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > most && <p class="row"><button type="button" onClick={() => setMost(most + FIRST_ROWS)}>Show more</button><span class="hint">{count(most)} of {count(all.length)}</span></p>}
    </div>
  );
}

function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
}

/** Up and down go from row to row; the one that has the focus is the one that Tab comes back to. */
function walk(event: KeyboardEvent): void {
  const row = event.target;
  if (!(row instanceof HTMLTableRowElement)) return;
  const rows = [...row.parentElement!.children] as HTMLTableRowElement[];
  const at = rows.indexOf(row);
  const next = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) }[event.key];
  if (!next) return;
  event.preventDefault();
  row.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
