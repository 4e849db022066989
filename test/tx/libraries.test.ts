import { describe } from "vitest";
import { contract } from "./contract.js";
import { libraries } from "./libraries.js";

describe.each(Object.entries(libraries))("an enqueue in a transaction of %s", (_, open) => contract(open));
