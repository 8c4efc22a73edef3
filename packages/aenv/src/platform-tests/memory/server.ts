import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import { startAsTold } from "../fixtures/start.ts";

// A server whose memory is watched; started with --expose-gc. It prints its addresses, and for each line of its input how much memory it
// uses after a garbage collection. It exits when its input ends, also when its group is ended: its sandboxes end with it then.
process.on("SIGTERM", () => {});
const server = await startAsTold();
const { token } = await server.access.tokens.create({ owner: "root", roles: ["admin"] });
console.log(JSON.stringify({ controlUrl: server.controlUrl, dataUrl: server.dataUrl, token }));

for await (const _ of createInterface(process.stdin)) {
  // Finalizers run between collections, and what they let go is collected by the next one.
  for (let time = 0; time < 3; time++) {
    globalThis.gc?.();
    await setImmediate();
  }
  console.log(JSON.stringify(process.memoryUsage()));
}
await server.close();
