import { Socket } from "node:net";
import { loadEnvironment, runSandbox } from "@aenv/kit";
import { UNSETTLED_AWAIT } from "../project/load-exit-code.ts";
import { answerPage } from "./page/answer.ts";

// The process that `aenv run` starts for the environment's code: node sandbox.ts <project> --socket <path> --host <host>

// stdin closes when the parent ends, even if it is killed. The listener must not keep this process running.
process.stdin.on("end", () => process.kill(process.pid, "SIGTERM")).resume();
if (process.stdin instanceof Socket) process.stdin.unref();

// The event loop is empty and the environment is not served: a top-level await never settles.
const onIdle = () => process.exit(UNSETTLED_AWAIT);
process.once("beforeExit", onIdle);
const options = { checksTasks: true, homePage: answerPage };
runSandbox(() => loadEnvironment(process.argv[2] ?? "."), process.argv.slice(3), options).then(() => process.off("beforeExit", onIdle));
