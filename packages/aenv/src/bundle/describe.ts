import { isPlatformError, messageOf } from "@aenv/contract";
import { loadEnvironment, serve } from "@aenv/kit";
import { UNSETTLED_AWAIT } from "../project/load-exit-code.ts";

// A process of its own, because it runs the environment's code: node describe.ts <folder> <socket>. It sends what it finds to its parent.
const [, , folder = ".", socketPath = ""] = process.argv;

// Without its parent nobody reads the answer. The listener must not keep the process running.
process.once("disconnect", () => process.exit(1));
process.channel?.unref();

// Nothing is left to do and there is no answer: the environment's code waits for something that cannot happen any more.
process.once("beforeExit", () => process.exit(UNSETTLED_AWAIT));

// Not awaited: Node would warn of an await in this file, which is not where the fault is.
describe().then((answer) => process.send?.(answer, () => process.exit(0)));

async function describe(): Promise<object> {
  try {
    const { name, version, definition } = await loadEnvironment(folder);
    // Served without an instance, on a socket that nobody dials: only to learn what it offers.
    const served = await serve(definition, { name, version, first: null, socketPath });
    const { tools, catalogue } = served.host.environment;
    const offer = { tools: [...tools.values()].map((tool) => tool.descriptor), functions: catalogue.functions, rewards: catalogue.reward };
    await served.close();
    return offer;
  } catch (error) {
    return { error: messageOf(error), place: isPlatformError(error) ? error.details.place : undefined };
  }
}
