import type { Library, Variant } from "../adapter.js";

/**
 * Every library, by name. Each is loaded only where it is used: a process that measures one must not
 * carry the others.
 */
const doors: Readonly<Record<string, () => Promise<Library>>> = {
  sluice: async () => (await import("./sluice/index.js")).sluice,
  "pure-sql": async () => (await import("./pure-sql/index.js")).pureSql,
  "graphile-worker": async () => (await import("./graphile-worker/index.js")).graphileWorker,
  "pg-boss": async () => (await import("./pg-boss/index.js")).pgBoss,
  "bullmq-redis": async () => (await import("./bullmq/redis.js")).bullmqRedis,
  "bullmq-postgres": async () => (await import("./bullmq/postgres.js")).bullmqPostgres,
  dbos: async () => (await import("./dbos/index.js")).dbos,
};

export async function loadLibrary(name: string): Promise<Library> {
  const door = doors[name];
  if (door === undefined) throw new Error(`no library ${name}`);
  return door();
}

export async function loadVariant(library: string, variant: string): Promise<Variant> {
  const { variants } = await loadLibrary(library);
  const found = variants.find(({ name }) => name === variant);
  if (found === undefined) throw new Error(`no variant ${variant} of ${library}`);
  return found;
}

/** All of them, Sluice first. */
export function loadAll(): Promise<Library[]> {
  return Promise.all(Object.keys(doors).map((name) => loadLibrary(name)));
}
