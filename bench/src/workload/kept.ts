import type { Shape } from "../adapter.js";
import type { Facts } from "../result.js";

/** Whether a sample kept what the shape asks for, as far as its handlers could see. */
export function keptOf({ ordered, limit, limitPerKey }: Shape): (facts: Facts) => boolean {
  return ({ inversions = 0, overlaps = 0, peak = 0, peakPerKey = 0 }) => {
    if (ordered === true && inversions + overlaps > 0) return false;
    return peak <= (limit ?? peak) && peakPerKey <= (limitPerKey ?? peakPerKey);
  };
}
