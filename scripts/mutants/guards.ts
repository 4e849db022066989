import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** A `guard:` comment of the source, and the test that it names. */
export interface Guard {
  readonly name: string;
  /** The file that contains it. */
  readonly in: string;
  readonly test: { readonly file: string; readonly name: string };
}

const comment = /\/\/ guard: (.+?) -> (\S+\.ts): "([^"]+)"/g;

/** Every guard in TypeScript. Those in SQL have their own test (test/postgres/mutants.test.ts). */
export function guardsBelow(root: string): Guard[] {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .map((file) => `src/${file.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".ts"));
  return files.toSorted().flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return [...text.matchAll(comment)].map(([, name, testFile, testName]) => ({
      name: name!,
      in: file,
      test: { file: testFile!, name: testName! },
    }));
  });
}
