/**
 * Returns the texts of a JSON list's members, unchanged. Parsing and serializing them again would change numbers that
 * JavaScript cannot represent. The text must be valid JSON.
 */
export function listTexts(text: string): string[] {
  const texts: string[] = [];
  const end = text.lastIndexOf("]");
  let from = text.indexOf("[") + 1;
  let depth = 0;
  for (let at = from; at < end; at++) {
    const c = text[at];
    if (c === '"') at = stringEnd(text, at);
    else if (c === "[" || c === "{") depth++;
    else if (c === "]" || c === "}") depth--;
    else if (c === "," && depth === 0) {
      texts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  const last = text.slice(from, end).trim();
  return last === "" ? texts : [...texts, last];
}

/** Returns the end of the string that begins here. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}
