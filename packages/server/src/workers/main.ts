import { enableCompileCache } from "node:module";
import { parseArgs } from "node:util";
import type { Command } from "./data-plane.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

// The program of a worker: a process that serves the data port together with its siblings. Its server starts it, tells it what it needs,
// and ends it; see workers.ts.

// The home only tells operators which server a worker belongs to.
const { values } = parseArgs({ options: { "compile-cache": { type: "string" }, home: { type: "string" } } });
if (values["compile-cache"] !== undefined) enableCompileCache(values["compile-cache"]);

// A signal of a terminal or a service manager is for the server too, which lets the calls in flight finish.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
process.on("disconnect", () => process.exit(0));

// Imported after the cache is enabled.
const [{ Channel }, { sendableError }] = await Promise.all([import("./channel.ts"), import("./sent-error.ts")]);
// What cannot be sent to a server that has died needs no further handling: the channel is closed next.
const send = (message: FromWorker) => {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
};
const channel = new Channel(send);
/** Commands that came before the port was open. */
const early: Command[] = [];
let obey = (command: Command) => {
  // Nothing is in memory yet, so there is nothing to forget.
  if (command.type === "confirm") send({ type: "confirmed", id: command.id });
  else early.push(command);
};

process.on("message", (message: ToWorker) => {
  switch (message.type) {
    case "open":
      void open(message.settings);
      return;
    case "answer":
    case "error":
      channel.onAnswer(message);
      return;
    default:
      obey(message);
  }
});

async function open(settings: Extract<ToWorker, { type: "open" }>["settings"]): Promise<void> {
  try {
    const { openDataPlane } = await import("./data-plane.ts");
    obey = await openDataPlane(channel, settings);
    for (const command of early) obey(command);
    send({ type: "listening" });
  } catch (error) {
    send({ type: "failed", error: sendableError(error) });
  }
}
