import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PrismaPg } from "@prisma/adapter-pg";
import type { Sluice } from "../../src/index.js";
import { fromPrisma, type PrismaTransaction } from "../../src/tx/index.js";
import type { Library } from "./library.js";
import { blockOf } from "./page.js";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const resolve = createRequire(import.meta.url).resolve;

/** A project folder with the code and the schema of the page, and the client generated from them. */
export interface Project {
  readonly folder: string;
  remove(): void;
}

/**
 * The client is generated here and not committed. Nothing is downloaded for that: Prisma
 * looks for its schema engine first, but never starts it, so any program will do.
 */
export function makeProject(): Project {
  const folder = mkdtempSync(join(tmpdir(), "sluice-prisma-"));
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"), "dir");
  write("package.json", JSON.stringify({ type: "module" }));
  write("schema.prisma", blockOf("prisma"));
  write("prisma.ts", ours(blockOf("ts prisma")));
  write("tasks.ts", ours(blockOf("ts tasks")));
  mkdirSync(join(folder, "home"));
  const cli = join(dirname(resolve("prisma/package.json")), "build/index.js");
  execFileSync(process.execPath, [cli, "generate", "--schema", "schema.prisma"], {
    cwd: folder,
    stdio: "pipe",
    env: {
      ...process.env,
      HOME: join(folder, "home"),
      CHECKPOINT_DISABLE: "1",
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    },
  });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The page's imports of our package, as paths into this repository. */
function ours(code: string): string {
  return code
    .replace('"sluice"', JSON.stringify(join(repository, "src/index.js")))
    .replace('"sluice/tx"', JSON.stringify(join(repository, "src/tx/index.js")));
}

/** The parts of the generated client that the contract needs. Its types are checked in the project itself. */
export interface Client {
  $transaction<T>(fn: (tx: Transaction) => Promise<T>, options?: { timeout?: number; maxWait?: number }): Promise<T>;
  $disconnect(): Promise<void>;
  $extends(extension: object): Client;
}
export interface Transaction extends PrismaTransaction {
  account: { create(args: { data: { name: string } }): Promise<unknown> };
  $transaction<T>(fn: (tx: Transaction) => Promise<T>): Promise<T>;
}

interface Generated {
  readonly PrismaClient: new (options: { adapter: PrismaPg }) => Client;
}
interface Snippet {
  readonly signUp: (prisma: Client, sluice: Sluice, name: string) => Promise<void>;
}

export async function openClient(project: Project, url: string): Promise<Client> {
  const path = join(project.folder, "generated/client.ts");
  const { PrismaClient } = (await import(/* @vite-ignore */ path)) as Generated;
  return new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 3 }) });
}

// The tests must not depend on the speed of the machine, as Prisma's 5 s would.
const PATIENCE = { timeout: 60_000, maxWait: 60_000 };

export async function openPrisma(project: Project, url: string): Promise<Library> {
  const prisma = await openClient(project, url);
  const path = join(project.folder, "prisma.ts");
  const { signUp } = (await import(/* @vite-ignore */ path)) as Snippet;
  return {
    transaction: (fn) =>
      prisma.$transaction(
        (tx) =>
          fn({
            tx: fromPrisma(tx),
            insert: async (name) => void (await tx.account.create({ data: { name } })),
          }),
        PATIENCE,
      ),
    signUp: (sluice, name) => signUp(prisma, sluice, name),
    close: () => prisma.$disconnect(),
  };
}
