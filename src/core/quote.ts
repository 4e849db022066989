const SHOWN_MAX = 40;

// JSON.stringify does not escape DEL and the C1 controls, but terminals interpret them.
const CONTROLS = /[\u007f-\u009f]/g;

/** Formats a value for an error message: short, on one line, and without throwing. */
export function quote(value: unknown): string {
  if (typeof value === "string") return quoteText(value);
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  if (typeof value === "object" && value !== null) return "an object";
  return shorten(typeof value === "bigint" ? `${value}n` : String(value));
}

function quoteText(text: string): string {
  const escaped = JSON.stringify(shorten(text));
  return escaped.replace(CONTROLS, (c) => "\\u00" + c.charCodeAt(0).toString(16));
}

function shorten(text: string): string {
  return text.length <= SHOWN_MAX ? text : text.slice(0, SHOWN_MAX) + "…";
}
