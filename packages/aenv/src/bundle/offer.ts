import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Offer } from "../catalogue.ts";
import { Failure, type Place } from "../failure.ts";

/** What the environment in a folder offers, found out by loading it in a process of its own. */
export async function offerOf(folder: string, onOutput: (text: string) => void): Promise<Offer> {
  const entry = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./describe.ts" : "./describe.js", import.meta.url));
  // What the environment would say with the data of this machine is no part of its bundle.
  const { AENV_DATA_DIR: _, ...env } = process.env;
  const child = fork(entry, [folder], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", onOutput);
  type Answer = Offer | { readonly error: string; readonly place?: Place };
  const answer = await new Promise<Answer>((resolve, reject) => {
    child.once("message", (message) => resolve(message as Answer));
    child.once("error", reject);
    child.once("close", (code) => reject(new Failure(`the environment's process ended while it was loaded (exit code ${code})`)));
  });
  if (!("error" in answer)) return answer;
  const message = answer.place === undefined ? answer.error : answer.error.replace(/^\S+:\d+(?::\d+)?: /, "");
  throw new Failure([{ message, place: answer.place }], { code: "environment.invalid" });
}
