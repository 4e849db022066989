// The same producer for a platform that wants CommonJS.
const { Client, isSluiceError, task } = require("sluice/client");

async function main() {
  const whole = await Client.connect({ listen: false }).catch((e) => e);
  console.log(isSluiceError(whole, "invalid_option") && whole.message);
  const client = await Client.connect({ migrate: false, listen: false });
  const handle = await client.enqueue(task("bundled"));
  console.log((await handle.status()).state);
  await client.close();
}

void main();
