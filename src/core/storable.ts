import { mend, tooDeep } from "./jsontext.js";
import { flatten } from "./flatten.js";
import { clip } from "./text.js";

// The keys, the count and the quotes around a preview.
const NOTE_BYTES = 64;
const PREVIEW_BYTES_MAX = 1024;

/**
 * JSON text for a handler's result or error that json and jsonb both accept. It never throws and
 * nothing is lost in silence: what cannot be stored becomes a description of itself, and what is
 * too large becomes `{ truncated, bytes, preview }`. Its text begins with `{ "truncated"`, with a blank, which
 * is how the database knows it (sluice.workflow_cut): a handler may have a result of the same fields.
 */
export function storable(value: unknown, bytesMax: number, onTruncated?: (bytes: number) => void): string {
  const text = mend(plain(value) ?? flattened(value, bytesMax));
  if (text.length * 3 <= bytesMax) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return text;
  onTruncated?.(bytes);
  return truncated(text, bytes, bytesMax);
}

/** The ordinary case: what JSON.stringify makes of it, if that can be stored. */
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

/** In the place of a result that the database refused, with its reason: the same note, without a preview. */
export function noteOf(text: string, refused: string): string {
  const note = { truncated: true, bytes: Buffer.byteLength(text), preview: "", refused };
  return `{ ${JSON.stringify(note).slice(1)}`;
}

function truncated(text: string, bytes: number, bytesMax: number): string {
  const room = Math.min(PREVIEW_BYTES_MAX, Math.max(0, bytesMax - NOTE_BYTES));
  // The blank tells this note from every value of a handler: JSON.stringify never writes one there.
  return `{ ${JSON.stringify({ truncated: true, bytes, preview: clip(text, room) }).slice(1)}`;
}
