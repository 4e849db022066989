import { expect, test } from "vitest";
import { sabotages } from "../../fault/sabotage.js";
import { mutate } from "../postgres/mutation.js";

test.each(Object.entries(sabotages))("the sabotage %s applies to the current engine", (_, mutations) => {
  for (const mutation of mutations) expect(() => mutate(mutation)).not.toThrow();
});
