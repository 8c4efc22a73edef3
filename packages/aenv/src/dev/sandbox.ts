import { Socket } from "node:net";
import { loadEnvironment, runSandbox } from "@aenv/kit";
import { UNSETTLED_AWAIT } from "../project/load-exit-code.ts";
import { answerPage } from "./page/answer.ts";

// The process that holds the environment's code while `aenv run` watches over it: node sandbox.ts <project> --socket <path> --host <host>

// The other end of stdin closes when the parent ends, however it ends. Listening for that must not keep this process running.
process.stdin.on("end", () => process.kill(process.pid, "SIGTERM")).resume();
if (process.stdin instanceof Socket) process.stdin.unref();

// Nothing is left to do and the environment is not served: its code waits for something that cannot happen any more.
const onIdle = () => process.exit(UNSETTLED_AWAIT);
process.once("beforeExit", onIdle);
const options = { checksTasks: true, homePage: answerPage };
runSandbox(() => loadEnvironment(process.argv[2] ?? "."), process.argv.slice(3), options).then(() => process.off("beforeExit", onIdle));
