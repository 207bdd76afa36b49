// Rows of usage as a file of comma-separated values.
import type { UsageRow } from "../types";

const KEEP_MS = 10_000;

/** One cell. A text that a spreadsheet would take for a formula is marked as text. */
function cell(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf(by: string, rows: readonly UsageRow[]): string {
  const names = Object.keys(rows[0] ?? {}) as (keyof UsageRow)[];
  const head = names.map((name) => (name === "group" ? by : name));
  return [head, ...rows.map((row) => names.map((name) => row[name] ?? ""))].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

export function exportRows(by: string, rows: readonly UsageRow[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(by, rows)], { type: "text/csv" }));
  link.download = `palyra-usage-${by}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}
