import { isPlatformError, messageOf } from "@aenv/contract";
import { loadEnvironment, serve } from "@aenv/kit";
import { UNSETTLED_AWAIT } from "../project/load-exit-code.ts";

// A separate process, because it runs the environment's code: node describe.ts <folder> <socket>. It sends the catalogue to its parent.
const [, , folder = ".", socketPath = ""] = process.argv;

// Without the parent, the answer is not needed. The listener must not keep the process running.
process.once("disconnect", () => process.exit(1));
process.channel?.unref();

// The event loop is empty and there is no answer: a top-level await never settles.
process.once("beforeExit", () => process.exit(UNSETTLED_AWAIT));

// Not awaited: Node would warn about an await in this file, which is not the cause.
describe().then((answer) => process.send?.(answer, () => process.exit(0)));

async function describe(): Promise<object> {
  try {
    const { name, version, definition } = await loadEnvironment(folder);
    // Served without an instance, on a socket that gets no connections, only to build the catalogue.
    const served = await serve(definition, { name, version, first: null, socketPath });
    const { tools, catalogue } = served.host.environment;
    const answer = { tools: [...tools.values()].map((tool) => tool.descriptor), functions: catalogue.functions, rewards: catalogue.reward };
    await served.close();
    return answer;
  } catch (error) {
    return { error: messageOf(error), place: isPlatformError(error) ? error.details.place : undefined };
  }
}
