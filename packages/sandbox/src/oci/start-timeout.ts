import { setTimeout } from "node:timers/promises";
import type { Listening } from "../engine/engine.ts";
import { healthPathOf } from "../spec/listening.ts";
import type { OciSandbox } from "./sandbox.ts";

/** All addresses of the sandbox: a fork of it has another one. */
export const ANY_HOST = "0.0.0.0";

/** Timeout for finding out why a program is not ready. */
const LOOK_MS = 1_000;

/** Why a program was not ready in time. `status` is its last answer, if there was one. */
export async function describeTimeout(
  sandbox: OciSandbox,
  listening: Listening,
  startTimeoutMs: number,
  status: number | null,
): Promise<string> {
  const port = sandbox.address.kind === "tcp" ? sandbox.address.port : 0;
  const answer = status === null ? "did not answer" : `answered ${status} to`;
  const isLocal = status === null && listening.kind === "port" && (await listensLocally(sandbox, port));
  const hint = isLocal ? `; it listens on 127.0.0.1 only, and must listen on ${ANY_HOST}, as the variable HOST says` : "";
  const last = sandbox.log.tail(1)[0];
  const printed = last === undefined ? "" : `; it last printed: ${last}`;
  return `the program ${answer} GET ${healthPathOf(listening)} on port ${port} within ${startTimeoutMs} ms${hint}${printed}`;
}

/** Whether the program is reached from inside the sandbox. */
async function listensLocally({ container }: OciSandbox, port: number): Promise<boolean> {
  const connecting = container.init.connect(port).then(
    (stream) => {
      stream.destroy();
      return true;
    },
    () => false,
  );
  return Promise.race([connecting, setTimeout(LOOK_MS, false, { ref: false })]);
}
