import { mend, tooDeep } from "./jsontext.js";
import { flatten } from "./flatten.js";
import { clip } from "./text.js";

// Bytes for the keys, the count and the quotes around a preview.
const NOTE_BYTES = 64;
const PREVIEW_BYTES_MAX = 1024;

/**
 * Returns JSON text for a handler's result or error that both json and jsonb accept. It never throws and never loses
 * data silently: a value that cannot be stored becomes a description of itself, and one that is too large becomes
 * `{ truncated, bytes, preview }`. That text begins with `{ "truncated"`, with a space, by which the database
 * recognizes it (sluice.workflow_cut): a handler may return a result with the same fields.
 */
export function storable(value: unknown, bytesMax: number, onTruncated?: (bytes: number) => void): string {
  const text = mend(plain(value) ?? flattened(value, bytesMax));
  if (text.length * 3 <= bytesMax) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return text;
  onTruncated?.(bytes);
  return truncated(text, bytes, bytesMax);
}

/** The common case: the text that JSON.stringify returns, if it can be stored. */
function plain(value: unknown): string | null {
  if (value === undefined) return "null";
  try {
    const text: string | undefined = JSON.stringify(value);
    return text === undefined || tooDeep(text) ? null : text;
  } catch {
    return null;
  }
}

function flattened(value: unknown, bytesMax: number): string {
  try {
    return JSON.stringify(flatten(value, bytesMax)) ?? "null";
  } catch {
    return '"[unserialisable]"';
  }
}

/** Replaces a result that the database refused, with its reason: the same note, without a preview. */
export function noteOf(text: string, refused: string): string {
  const note = { truncated: true, bytes: Buffer.byteLength(text), preview: "", refused };
  return `{ ${JSON.stringify(note).slice(1)}`;
}

function truncated(text: string, bytes: number, bytesMax: number): string {
  const room = Math.min(PREVIEW_BYTES_MAX, Math.max(0, bytesMax - NOTE_BYTES));
  // The space distinguishes this note from every handler's value: JSON.stringify never writes one there.
  return `{ ${JSON.stringify({ truncated: true, bytes, preview: clip(text, room) }).slice(1)}`;
}
