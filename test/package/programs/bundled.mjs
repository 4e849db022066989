// A producer as a serverless platform has it: everything in one file.
import { Client, isSluiceError, task } from "sluice/client";

const whole = await Client.connect({ listen: false }).catch((e) => e);
console.log(isSluiceError(whole, "invalid_option") && whole.message);
const client = await Client.connect({ migrate: false, listen: false });
const handle = await client.enqueue(task("bundled"));
console.log((await handle.status()).state);
await client.close();
