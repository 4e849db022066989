// With the u flag, Cs matches only lone surrogates.
const UNSTORABLE = /[\0\p{Cs}]/gu;

/** Replaces NUL and lone surrogates with U+FFFD, so that PostgreSQL's text, json and jsonb all accept the text. */
function storableText(text: string): string {
  return text.replace(UNSTORABLE, "\ufffd");
}

/** Returns the beginning of a text, storable, and cut to at most `bytesMax` bytes inside JSON quotes. */
export function clip(text: string, bytesMax: number): string {
  const start = storableText(text.slice(0, bytesMax));
  if (text.length <= bytesMax && jsonBytes(start) <= bytesMax) return start;
  const room = bytesMax - Buffer.byteLength("…");
  if (room < 0) return "";
  let cut = start;
  // Each round keeps the share that fits, so a few rounds suffice.
  while (cut.length > 0 && jsonBytes(cut) > room) {
    cut = cut.slice(0, Math.min(cut.length - 1, shareThatFits(cut, room)));
  }
  return storableText(cut) + "…";
}

function shareThatFits(text: string, bytesMax: number): number {
  return Math.max(0, Math.floor((text.length * bytesMax) / jsonBytes(text)));
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}
