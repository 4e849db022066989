// CommonJS: Node 20.19 and newer can require an ES module.
const { Client, task } = require("sluice/client");
const { Sluice, isSluiceError } = require("sluice");

async function main() {
  const sluice = await Sluice.connect();
  const hello = task("hello");
  const worker = sluice.worker({ handlers: [hello.handle(() => "hello")] });
  await worker.start();
  const client = await Client.connect();
  const handle = await client.enqueue(hello);
  console.log(await handle.result());
  await client.close();
  await sluice.close();
  const refusal = await client.enqueue(hello).catch((e) => e);
  console.log(isSluiceError(refusal, "closed"));
}

void main();
