import { readFileSync } from "node:fs";

let known: string | undefined;

/** The version of this package; "unknown" in a bundle, which has no package.json beside it. */
export function packageVersion(): string {
  known ??= read();
  return known;
}

function read(): string {
  try {
    const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    const { name, version } = JSON.parse(text) as { name?: string; version?: string };
    return name === "sluice" && version !== undefined ? version : "unknown";
  } catch {
    return "unknown";
  }
}
