// One number of a limit, as the faults of limits see it.
import type { LimitStatus } from "../../src/index.js";
import type { Stage } from "../stage.js";
import { insist, unlessAway } from "./administrator.js";

/** The total of a limit, or its number for each key. */
export interface LimitNumber {
  readonly name: string;
  readonly part: "total" | "perKey";
  readonly slots: number;
  /** Out now: of the total, or of the fullest key. */
  readonly used: number;
}

type Put = number | null | "declared";

const lookEveryMs = 10;
const foundWithinMs = 3_000;
// Two faults must not change the same limit at once: each puts back what it found.
const inHand = new Set<string>();

/** Does something with a limit that no other fault has in hand; 0 if one has. */
export async function holding(name: string, work: () => Promise<number>): Promise<number> {
  if (inHand.has(name)) return 0;
  inHand.add(name);
  try {
    return await work();
  } finally {
    inHand.delete(name);
  }
}

/** Does something with a number that fits; 0 if none is found in time. */
export async function withNumber(
  stage: Stage,
  fits: (n: LimitNumber) => boolean,
  use: (n: LimitNumber) => Promise<number>,
): Promise<number> {
  const found = await find(stage, (n) => !inHand.has(n.name) && fits(n));
  return found === undefined ? 0 : holding(found.name, () => use(found));
}

async function find(stage: Stage, fits: (n: LimitNumber) => boolean): Promise<LimitNumber | undefined> {
  const end = performance.now() + foundWithinMs;
  while (!stage.signal.aborted && performance.now() < end) {
    const all = (await unlessAway(() => stage.sluice.limits.list())) ?? [];
    const fit = all
      .filter(({ overridden }) => !overridden)
      .flatMap(numbersOf)
      .filter(fits);
    if (fit.length > 0) return anyOf(fit);
    await stage.pause(lookEveryMs);
  }
  return undefined;
}

/**
 * Not always the first: the order of names is the same every time, what is full is not. Numbered names are one family,
 * because nearly all limits are groups and the others must have their turns too.
 */
function anyOf(fit: readonly LimitNumber[]): LimitNumber {
  const familyOf = ({ name }: LimitNumber): string => name.replace(/-\d+$/, "");
  const families = [...new Set(fit.map(familyOf))];
  const chance = Math.floor(performance.now());
  const family = fit.filter((n) => familyOf(n) === families[chance % families.length]);
  return family[chance % family.length]!;
}

function numbersOf({ name, total, perKey, used, usedMax }: LimitStatus): LimitNumber[] {
  const numbers: LimitNumber[] = [];
  if (typeof total === "number") numbers.push({ name, part: "total", slots: total, used });
  if (typeof perKey === "number") numbers.push({ name, part: "perKey", slots: perKey, used: usedMax ?? 0 });
  return numbers;
}

/** Puts another number in its place while something is done, and then the declared one again. */
export async function changed(
  stage: Stage,
  n: LimitNumber,
  to: number | null,
  during: () => Promise<number>,
): Promise<number> {
  try {
    const set = await unlessAway(() => put(stage, n, to, to));
    return set === undefined ? 0 : await during();
  } finally {
    await insist(() => put(stage, n, "declared", n.slots));
  }
}

async function put(stage: Stage, n: LimitNumber, what: Put, slots: number | null): Promise<true> {
  const limit = n.part === "total" ? n.name : `${n.name}/*`;
  return telling(stage, limit, slots, () => stage.sluice.limits.set(n.name, { [n.part]: what }));
}

/** Both lines tell the number, and the change takes place between them. */
export async function telling(
  stage: Stage,
  limit: string,
  slots: number | null,
  change: () => Promise<unknown>,
): Promise<true> {
  await stage.log.write([{ kind: "changing", limit, slots }]);
  await change();
  await stage.log.write([{ kind: "changed", limit, slots }]);
  return true;
}

interface Looking {
  readonly forMs: number;
  /** Also when it has been seen. */
  readonly toTheEnd: boolean;
}

/** 1 if slots in use that fit were seen in this time. */
export function seen(stage: Stage, n: LimitNumber, looking: Looking, fits: (used: number) => boolean): Promise<number> {
  return observed(stage, looking, async () => {
    const status = await stage.sluice.limits.get(n.name);
    return fits(n.part === "total" ? status.used : (status.usedMax ?? 0));
  });
}

/** 1 if it was so at some moment in this time. */
export async function observed(
  stage: Stage,
  { forMs, toTheEnd }: Looking,
  isSo: () => Promise<boolean>,
): Promise<number> {
  const end = performance.now() + forMs;
  let bit = 0;
  while (!stage.signal.aborted && performance.now() < end) {
    if ((await unlessAway(isSo)) === true) bit = 1;
    if (bit === 1 && !toTheEnd) break;
    await stage.pause(lookEveryMs);
  }
  return bit;
}
