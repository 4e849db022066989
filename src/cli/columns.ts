import { oneLine } from "./workflow/view.js";

/** Aligns rows of cells to columns, two spaces apart. Cells that are colored must be in the last column. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>((max, row) => {
    row.forEach((cell, i) => (max[i] = Math.max(max[i] ?? 0, cell.length)));
    return max;
  }, []);
  return rows.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
}

/** Lines of a name and its value, indented below a title. Values that are null are left out. */
export function details(title: string, values: readonly (readonly [string, string | null])[]): string[] {
  const shown = values.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
  return [title, ...columns(shown).map((line) => `  ${line}`)];
}

/** A JSON value on one line, shortened for people. */
export function jsonLine(value: unknown): string {
  return oneLine(JSON.stringify(value) ?? "null");
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
] as const;

/** A length of time in its largest unit, such as `5 min`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [size, unit] = UNITS.find(([of]) => seconds >= of) ?? UNITS[3];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** A time, for people and programs alike. */
export function moment(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}
