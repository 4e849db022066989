// Starts or joins a server, prints its address, and then stays or ends.
import { startEmbedded } from "../../src/embedded/index.js";

const [dataDir, then] = process.argv.slice(2);
const server = await startEmbedded(dataDir ? { dataDir } : {});
console.log(`server ${JSON.stringify(server)}`);
// Without "stay" the process has nothing left to do: the server alone must not keep it alive.
if (then === "stay") setInterval(() => {}, 60_000);
