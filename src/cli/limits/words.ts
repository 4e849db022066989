import type { Slots } from "../../core/limit.js";
import type { LimitStatus } from "../../postgres/limits.js";

/** The slots in use of the total and of the fullest key; null for a part that the limit does not have. */
export function usesOf({
  total,
  perKey,
  used,
  keysInUse,
  usedMax,
}: LimitStatus): Record<"total" | "perKey", string | null> {
  return {
    total: total === undefined ? null : `${used} of ${slotsText(total)}`,
    perKey:
      perKey === undefined
        ? null
        : `${keysInUse} ${keysInUse === 1 ? "key" : "keys"}, the fullest with ${usedMax} of ${slotsText(perKey)}`,
  };
}

/** Slots as a number, or "no limit". */
export function slotsText(n: Slots): string {
  return n === null ? "no limit" : String(n);
}
