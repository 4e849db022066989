import { readFileSync } from "node:fs";

const page = new URL("../../docs/start/transactions.md", import.meta.url);

/** The code block of the transactions page that starts with these words. */
export function blockOf(opening: string): string {
  const text = readFileSync(page, "utf8");
  const [, rest] = text.split(`\n\`\`\`${opening}\n`);
  if (rest === undefined) throw new Error(`the page has no block "${opening}"`);
  return rest.slice(0, rest.indexOf("```"));
}
