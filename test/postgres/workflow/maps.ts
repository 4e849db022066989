import type { Session } from "../../support/sql.js";
import type { InHand, Play } from "./play.js";

const RECORD = "\u001e";

interface MapTerms {
  /** null: all at once. */
  readonly window?: number | null;
  readonly type?: string;
  readonly onError?: string;
}

/** What ctx.map does: finds its fan-out or makes it with all its tasks, in one transaction. */
export async function map(
  play: Play,
  parent: InHand,
  name: string,
  n: number,
  options: MapTerms = {},
): Promise<{ run: string; fresh: boolean }> {
  await play.db.begin();
  const made = await openMap(play, play.db, parent, name, n, options);
  if (made.fresh && n > 0) await sayPlaced(play.db, made.run);
  await play.db.commit();
  return made;
}

/** All of it but the last word: that its tasks are placed, and the commit. */
export async function openMap(
  play: Play,
  db: Session,
  parent: InHand,
  name: string,
  n: number,
  options: MapTerms = {},
): Promise<{ run: string; fresh: boolean }> {
  const { window = 2, type = "item", onError = "finish" } = options;
  const stream = play.streamOf(type);
  const [made] = await db.rows<{ run: string; fresh: boolean }>(
    "select run, fresh from sluice.workflow_map($1, $2, $3, $4, $5, $6, $7, $8)",
    [play.worker.id, parent.id, parent.token, name, stream, n, window, onError],
  );
  if (made!.fresh && n > 0) {
    const inputs = Array.from({ length: n }, (_, i) => String(i)).join(RECORD);
    const place = "select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, $3)";
    await db.value(place, [made!.run, stream, inputs]);
  }
  return made!;
}

export const sayPlaced = (db: Session, run: string): Promise<boolean> =>
  db.value("select sluice.workflow_placed($1, 1::smallint)", [run]);

/** Pauses a run or resumes it, and then what its tasks have fanned out, as a client does. Returns how many pieces. */
export async function pauseAll(play: Play, run: number | string, paused: boolean, max = 1_000): Promise<number> {
  await play.db.value("select sluice.workflow_pause($1, $2)", [run, paused]);
  return follow(play.db, run, max);
}

export async function follow(db: Session, run: number | string, max = 1_000): Promise<number> {
  for (let pieces = 1; ; pieces++) {
    const more = await db.value<boolean>("select more from sluice.workflow_follow($1, $2)", [run, max]);
    if (!more) return pieces;
  }
}

/** The handler's run ends until one of these is over. */
export async function sleep(play: Play, parent: InHand, ...runs: string[]): Promise<void> {
  await play.db.value("select sluice.settle($1, $2, $3, '{wait}', '{0}', $4)::text", [
    play.worker.id,
    [parent.id],
    [parent.token],
    JSON.stringify(runs.map(Number)),
  ]);
  play.hand = play.hand.filter((h) => h.id !== parent.id);
}
