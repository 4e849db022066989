/** The maximum nesting depth of JSON. PostgreSQL's parser recurses and fails near a depth of 6,000. */
export const NESTING_MAX = 1000;

const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const BAD_ESCAPE = /^(?:0000|d[89a-f][0-9a-f]{2})/i;
// Matches one escape at a time, so that the second half of an escaped backslash never counts as the start of another.
const EACH_ESCAPE = /\\(?:u([0-9a-f]{4})|[^])/gi;

/**
 * Returns the position of the first escaped NUL or lone surrogate in JSON text, or -1. JSON.stringify writes complete
 * pairs unescaped.
 */
export function unstorableAt(text: string): number {
  let at = text.indexOf("\\u");
  while (at !== -1) {
    if (!escapedAt(text, at) && BAD_ESCAPE.test(text.slice(at + 2, at + 6))) return at;
    at = text.indexOf("\\u", at + 2);
  }
  return -1;
}

/** Returns the JSON text with every escaped NUL and lone surrogate replaced by U+FFFD. */
export function mend(text: string): string {
  if (unstorableAt(text) === -1) return text;
  return text.replace(EACH_ESCAPE, (escape, hex?: string) =>
    hex !== undefined && BAD_ESCAPE.test(hex) ? "\ufffd" : escape,
  );
}

/** Whether JSON text is nested deeper than NESTING_MAX. */
export function tooDeep(text: string): boolean {
  // Each level needs an opening and a closing character.
  if (text.length <= NESTING_MAX * 2) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) i = endOfString(text, i);
    else if (c === 0x7b || c === 0x5b) depth++;
    else if (c === 0x7d || c === 0x5d) depth--;
    if (depth > NESTING_MAX) return true;
  }
  return false;
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && escapedAt(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

/** Returns whether a preceding backslash escapes the character at this position. */
function escapedAt(text: string, at: number): boolean {
  let i = at;
  while (i > 0 && text.charCodeAt(i - 1) === BACKSLASH) i--;
  return (at - i) % 2 === 1;
}
