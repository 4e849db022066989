import { existsSync, readdirSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const DEBIAN = "/usr/lib/postgresql";
// What DESIGN's numbers were measured on; another version is second choice.
const PREFERRED = "15";

/** The folder with the programs of an ordinary PostgreSQL, or null. */
export function findPostgres(): string | null {
  return [...debian(), ...onPath()].find(isComplete) ?? null;
}

function debian(): string[] {
  if (!existsSync(DEBIAN)) return [];
  return readdirSync(DEBIAN)
    .toSorted((a, b) => Number(b === PREFERRED) - Number(a === PREFERRED) || Number(b) - Number(a))
    .map((version) => join(DEBIAN, version, "bin"));
}

/** PATH often has a link only; initdb stands beside what it leads to. */
function onPath(): string[] {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "postgres"))
    .filter((file) => existsSync(file))
    .map((file) => dirname(realpathSync(file)));
}

function isComplete(bin: string): boolean {
  return existsSync(join(bin, "postgres")) && existsSync(join(bin, "initdb"));
}
