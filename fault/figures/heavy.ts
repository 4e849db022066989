import { task, type } from "../../src/index.js";

/** A task whose payload is nearly as large as one may be. */
export const heavy = task("heavy", { input: type<{ text: string }>() });
