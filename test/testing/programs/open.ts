import { testSluice } from "../../../src/testing/index.js";

// Opens a test database in the given schema, prints its address, and closes it.
const [schema = "sluice"] = process.argv.slice(2);
const t = await testSluice({ schema });
const counts = await t.sluice.counts();
console.log(`${new URL(t.url).host} ${counts.ready}`);
await t.close();
