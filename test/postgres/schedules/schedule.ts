import { Scene, type Session } from "../../support/sql.js";

/**
 * Steps of several sessions in one fixed interleaving, and what must be seen. On the real schema it
 * is a test; on a schema from which a guard was removed something else must be seen.
 */
export interface Schedule<Seen extends object = object> {
  readonly wanted: Seen;
  readonly run: (scene: Scene) => Promise<Seen>;
}

export function schedule<Seen extends object>(wanted: Seen, run: (scene: Scene) => Promise<Seen>): Schedule<Seen> {
  return { wanted, run };
}

/** What is seen on a fresh database; what must never be is looked for at the end of every schedule. */
export async function observe<Seen extends object>(
  { run }: Schedule<Seen>,
  prepare?: (watcher: Session) => Promise<void>,
): Promise<Seen & { violations: string[] }> {
  const scene = await Scene.open(prepare);
  try {
    const seen = await run(scene);
    return { ...seen, violations: await scene.violations() };
  } finally {
    await scene.close();
  }
}

/** What `observe` must see. */
export function wanted<Seen extends object>(s: Schedule<Seen>): Seen & { violations: string[] } {
  return { ...s.wanted, violations: [] };
}
