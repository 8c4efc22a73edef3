import { createInterface } from "node:readline";
import { unpackLayer } from "./archive.ts";
import { ImageMeter, LayerError, LimitExceeded } from "./limits.ts";
import { MAX_MESSAGE, type UnpackAnswer, type UnpackRequest, type UnpackSettings } from "./messages.ts";

// Unpacks the layers of one image, one after the other: a process of its own, because what others have packed takes memory and time, and may
// find faults of decompressors. It has no network, no variables and nothing open but these streams.

/** Standard error: who has started this process reads it to the end. */
const ALIVE = 2;

const { limits, devices } = JSON.parse(process.argv[2] ?? "") as UnpackSettings;
const image = new ImageMeter(limits);

for await (const line of createInterface({ input: process.stdin.once("end", () => process.exit(1)) })) {
  const { diffId, blob, folder } = JSON.parse(line) as UnpackRequest;
  const options = { diffId, image, alive: ALIVE, ...(devices !== undefined && { devices }) };
  const answer = await unpackLayer(blob, folder, options).then((): UnpackAnswer => ({ kind: "done" }), answerTo);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

function answerTo(error: unknown): UnpackAnswer {
  if (error instanceof LimitExceeded) return { kind: "limit", limit: error.limit, value: error.value };
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "error", code: error instanceof LayerError ? error.code : null, message: message.slice(0, MAX_MESSAGE) };
}
