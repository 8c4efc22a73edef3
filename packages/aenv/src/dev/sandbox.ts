import { Socket } from "node:net";
import { loadEnvironment, loadUses, runSandbox } from "@aenv/kit";
import { UNSETTLED_AWAIT } from "../project/load-exit-code.ts";
import { readProject } from "../project/project.ts";
import { declaredModels } from "./declared-models.ts";
import { answerPage } from "./page/answer.ts";

// The process that `aenv run` starts for the environment's code: node sandbox.ts <project> --socket <path> --host <host> --use <child>=<place>

// stdin closes when the parent ends, even if it is killed. The listener must not keep this process running.
process.stdin.on("end", () => process.kill(process.pid, "SIGTERM")).resume();
if (process.stdin instanceof Socket) process.stdin.unref();

// The event loop is empty and the environment is not served: a top-level await never settles.
const onIdle = () => process.exit(UNSETTLED_AWAIT);
process.once("beforeExit", onIdle);
const root = process.argv[2] ?? ".";
const models = declaredModels(readProject(root, root), process.env);
const options = { checksTasks: true, homePage: answerPage, ...(models !== undefined && { models }) };
/** Where children are: arguments of the form `--use NAME=PATH_OR_URL`. */
const places = process.argv.flatMap((argument, at) => (process.argv[at - 1] === "--use" ? [argument] : []));
const load = async () => {
  const loaded = await loadEnvironment(root);
  const pairs = places.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
  return { ...loaded, uses: await loadUses(loaded, Object.fromEntries(pairs)) };
};
runSandbox(load, process.argv.slice(3), options).then(() => process.off("beforeExit", onIdle));
