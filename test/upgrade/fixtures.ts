import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fixtureIn, makeFixture, type Fixture } from "../../scripts/release/fixture.js";
import { freshDatabase } from "../support/database.js";

const folder = fileURLToPath(new URL("./fixtures", import.meta.url));

export interface Fixtures {
  readonly all: readonly Fixture[];
  remove(): void;
}

/** The fixtures of all releases. Before the first release, one built from the source. */
export async function fixtures(): Promise<Fixtures> {
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const versions = files.flatMap((file) => /^sluice-(.+)\.tgz$/.exec(file)?.[1] ?? []);
  if (versions.length > 0) return { all: versions.map((version) => fixtureIn(folder, version)), remove: () => {} };
  const made = mkdtempSync(join(tmpdir(), "sluice-fixture-"));
  const databases = [await freshDatabase(), await freshDatabase()] as const;
  try {
    const fixture = await makeFixture(made, [databases[0].url, databases[1].url]);
    return { all: [fixture], remove: () => rmSync(made, { recursive: true }) };
  } finally {
    for (const database of databases) await database.drop();
  }
}
