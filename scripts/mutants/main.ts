// Takes every guard out of the TypeScript, one at a time and in a private copy of the tree, and wants to
// see the test die that its comment names; then the same for the SQL, by the test that does it there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "../../src/embedded/index.js";
import { guardsBelow, type Guard } from "./guards.js";
import { mutants } from "./list.js";
import { LONG_RUN_MS_MAX, Tree } from "./tree.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const AT_ONCE = 2;
const only = process.argv.slice(2);
const total = { passed: 0, failed: 0 };

function tell(what: string, trouble: string | null): void {
  total[trouble === null ? "passed" : "failed"]++;
  console.log(trouble === null ? `  killed  ${what}` : `  FAILED  ${what}: ${trouble}`);
}

/** Reports guards without a mutant and mutants without a guard. */
function strangers(guards: readonly Guard[]): void {
  const named = new Set(guards.map((g) => g.name));
  const tried = new Set(mutants.map((m) => m.guard));
  for (const { name } of guards) if (!tried.has(name)) tell(name, "this guard has no mutant");
  for (const { guard } of mutants) if (!named.has(guard)) tell(guard, "there is no such guard");
}

/** Checks that every named test passes without a mutation. Otherwise its failure would prove nothing. */
async function healthy(tree: Tree, guards: readonly Guard[]): Promise<void> {
  const names = [...new Set(guards.map((g) => g.test.name))];
  const files = [...new Set(guards.map((g) => g.test.file))];
  const results = await tree.run(files, names, LONG_RUN_MS_MAX);
  for (const name of names) {
    const status = results.find((r) => r.title === name)?.status ?? "not run";
    if (status !== "passed") tell(name, `the test has ${status} without a mutation`);
  }
}

async function killAll(trees: readonly Tree[], guards: readonly Guard[]): Promise<void> {
  const queue = guards.flatMap((guard) => {
    const mutant = mutants.find((m) => m.guard === guard.name);
    return mutant === undefined ? [] : [{ guard, mutant }];
  });
  const work = async (tree: Tree): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      tell(next.guard.name, await tree.kill(next.guard, next.mutant));
  };
  await Promise.all(trees.map(work));
}

async function sql(tree: Tree): Promise<void> {
  const results = await tree.run(["test/postgres/mutants.test.ts"], [""], LONG_RUN_MS_MAX);
  if (results.length === 0) tell("SQL", "its test did not load, or did not end in time");
  for (const { title, status } of results) tell(`SQL: ${title}`, status === "passed" ? null : `its test has ${status}`);
}

const chosen = ({ name }: Guard): boolean => only.length === 0 || only.includes(name);
const guards = guardsBelow(root).filter(chosen);
const directory = mkdtempSync(join(tmpdir(), "sluice-mutants-"));
const settings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
const server = process.env["DATABASE_URL"] === undefined ? await startEmbedded({ settings }) : undefined;
try {
  const url = server?.url ?? process.env["DATABASE_URL"]!;
  const trees = Array.from({ length: AT_ONCE }, (_, i) => new Tree(root, join(directory, String(i)), url));
  if (only.length === 0) strangers(guards);
  await healthy(trees[0]!, guards);
  await killAll(trees, guards);
  if (only.length === 0) await sql(trees[0]!);
} finally {
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
}
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
